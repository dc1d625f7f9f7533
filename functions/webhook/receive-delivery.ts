import { pollSources } from "#functions/webhook/poll-sources.ts";
import {
  notFollowed,
  type Proven,
  proveDelivery,
  tooLarge,
  type WebhookAnswer,
} from "#functions/webhook/prove-delivery.ts";
import type { WebhookRequest } from "#functions/webhook/providers/provider.ts";
import { secretProviders } from "#functions/webhook/providers/receiver-providers.ts";
import { readReceiverSecrets } from "#functions/webhook/read-receiver-secrets.ts";
import type { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import { proveByToken } from "#functions/webhook/tokens/prove-by-token.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { receiverSources } from "#shared/adapters/receiver-sources.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { isTokenProvider, type SecretSender } from "#shared/fleet/kinds/receiver.ts";
import { isReceiverId, receiverId } from "#shared/fleet/receiver-id.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ReceiverRow } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

export interface ReceiverPorts {
  readonly ports: WebhookPorts;
  readonly issuers: IssuerKeys;
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
  { ports, issuers }: ReceiverPorts,
): Promise<WebhookAnswer> {
  const refused = tooLarge(request);
  if (refused !== undefined) return refused;
  const table = tableNow(ports.table, ports.clock);
  const row = isReceiverId(id) ? await receiverOf(id, table) : undefined;
  if (row === undefined) return { statusCode: 404, message: "not found" };
  if (row.operations.suspended !== undefined) return { statusCode: 503, message: "suspended" };
  const { provider: kind, events } = row.spec;
  const sent = { ...request, receiver: id };
  const proven = isTokenProvider(kind)
    ? await proveByToken(kind, { row, request: sent }, { ports, issuers })
    : await proveBySecret(kind, { row, request: sent }, ports);
  if ("answer" in proven) return proven.answer;
  const event = isTokenProvider(kind) ? undefined : secretProviders[kind].eventOf?.(request);
  if (events !== undefined && !events.some((one) => one.toLowerCase() === event)) return notFollowed.answer;
  const { namespace, name } = row;
  const about = { kind: "Receiver", namespace, name, provider: kind };
  return pollSources(proven.push, await receiverSources(row, table), { ports, about });
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
