import { pollSources } from "#functions/webhook/poll-sources.ts";
import {
  type Answered,
  answered,
  notFollowed,
  type Proven,
  proveDelivery,
  tooLarge,
  type WebhookAnswer,
} from "#functions/webhook/prove-delivery.ts";
import type { WebhookRequest } from "#functions/webhook/providers/provider.ts";
import { secretProviders } from "#functions/webhook/providers/receiver-providers.ts";
import { readReceiverSecrets } from "#functions/webhook/read-receiver-secrets.ts";
import type { DeliveryRecords } from "#functions/webhook/record-delivery.ts";
import type { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import { proveByToken } from "#functions/webhook/tokens/prove-by-token.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { receiverSources } from "#shared/adapters/receiver-sources.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { isTokenProvider, type ProviderName, providerEvents, type SecretSender } from "#shared/fleet/kinds/receiver.ts";
import { isReceiverId, receiverId } from "#shared/fleet/receiver-id.ts";
import type { LastDeliveries } from "#shared/fleet/rows/deliveries-row.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ReceiverRow } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

export interface ReceiverPorts {
  readonly ports: WebhookPorts;
  readonly issuers: IssuerKeys;
  readonly records: DeliveryRecords;
}

/**
 * Handles a delivery to the URL of a Receiver. The Receiver says which kind of sender it is, so that nothing in the
 * request chooses the proof. The push is a hint to poll those of its Sources that it can change.
 * @param id - the last segment of the URL.
 * @throws StarlingError when a secret cannot be read, or has no valid value.
 */
export async function receiveDelivery(
  id: string,
  request: WebhookRequest,
  { ports, issuers, records }: ReceiverPorts,
): Promise<WebhookAnswer> {
  const refused = tooLarge(request);
  if (refused !== undefined) return refused;
  const table = tableNow(ports.table, ports.clock);
  const row = isReceiverId(id) ? await receiverOf(id, table) : undefined;
  if (row === undefined) return { statusCode: 404, message: "not found" };
  const { provider } = row.spec;
  const event = isTokenProvider(provider) ? undefined : secretProviders[provider].eventOf?.(request);
  const delivery = { event, provider, at: ports.clock.now().toISOString() };
  try {
    const handled = await handleDelivery(row, { event, request: { ...request, receiver: id } }, { ports, issuers });
    await records.record(id, recordOf(handled, delivery));
    return handled.answer;
  } catch (error) {
    const answer = { statusCode: 503, message: errorMessage(error) } as const;
    await records.record(id, recordOf({ answer }, delivery));
    throw error;
  }
}

interface Delivery {
  readonly event: string | undefined;
  readonly provider: ProviderName;
  readonly at: string;
}

/** The record of a delivery. A stranger chooses the name of an event, so that a refusal has one that the provider has. */
function recordOf(
  { answer, reason, isUnproven }: Answered,
  { event, provider, at }: Delivery,
): LastDeliveries | undefined {
  const { statusCode: status, message, polled = 0 } = answer;
  if (isUnproven === true) return undefined;
  if (status < 400) return { accepted: { at, polled, ...defined({ event: event && excerpt(event) }) } };
  const known: readonly string[] = providerEvents[provider];
  const named = known.find((one) => one === event);
  return { refused: { at, status, reason: reason ?? message, ...defined({ event: named }) } };
}

async function handleDelivery(
  row: ReceiverRow,
  { event, request }: { readonly event: string | undefined; readonly request: WebhookRequest },
  { ports, issuers }: Pick<ReceiverPorts, "ports" | "issuers">,
): Promise<Answered> {
  if (row.operations.suspended !== undefined)
    return { ...answered(503, "suspended"), reason: "the Receiver is suspended" };
  const { provider: kind, events } = row.spec;
  const proven = isTokenProvider(kind)
    ? await proveByToken(kind, { row, request }, { ports, issuers })
    : await proveBySecret(kind, { row, request }, ports);
  if ("answer" in proven) return proven;
  if (events !== undefined && !events.some((one) => one.toLowerCase() === event)) return notFollowed;
  const { namespace, name } = row;
  const about = { kind: "Receiver", namespace, name, provider: kind };
  const sources = await receiverSources(row, tableNow(ports.table, ports.clock));
  return { answer: await pollSources(proven.push, sources, { ports, about }) };
}

async function proveBySecret(
  kind: SecretSender,
  { row, request }: { readonly row: ReceiverRow; readonly request: WebhookRequest },
  ports: WebhookPorts,
): Promise<Proven> {
  const { values, failure } = await readReceiverSecrets(row, ports.secrets);
  const proven = proveDelivery(secretProviders[kind], request, values);
  // The sender may know the secret that could not be read.
  if (failure !== undefined && "answer" in proven && proven.answer.statusCode === 401) throw failure;
  return proven;
}

async function receiverOf(id: string, table: Table): Promise<ReceiverRow | undefined> {
  const range = ranges.receivers(id);
  for await (const entry of allItems((start) => table.query({ ...range, newer: "kept", ...start }))) {
    const receiver = keys.receiverEntry.parse(entry);
    if (receiver === undefined) continue;
    const row = await table.get(keys.object(receiver.namespace, "Receiver", receiver.name));
    if (row !== undefined && receiverId(row) === id) return row;
  }
  return undefined;
}
