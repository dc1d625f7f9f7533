import * as z from "zod";
import { addressesOf, pollSources } from "#functions/webhook/poll-sources.ts";
import { proveDelivery, tooLarge, type WebhookAnswer } from "#functions/webhook/prove-delivery.ts";
import { gitHosts } from "#functions/webhook/providers/git-hosts.ts";
import type { Push, WebhookRequest } from "#functions/webhook/providers/provider.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { jsonOf } from "#shared/base/json-of.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

const secretList = z.array(z.string().min(1)).min(1).max(2);
const secretsOfHosts = z.union([
  secretList,
  z
    .strictObject(Object.fromEntries([...gitHosts.keys()].map((host) => [host, secretList.optional()])))
    .refine((lists) => Object.keys(lists).length > 0),
]);

/**
 * Handles a push from a git host. Its sender is verified over the raw bytes before anything is read. The push is then a
 * hint to poll the Sources of the repository that can follow a reference of it.
 * @param host - the last segment of the URL. It alone decides how the sender is verified.
 * @throws StarlingError `SecretNotFound` or `InvalidSecret` when the operator has to act.
 */
export async function receiveEvent(host: string, request: WebhookRequest, ports: WebhookPorts): Promise<WebhookAnswer> {
  const gitHost = gitHosts.get(host);
  if (gitHost === undefined)
    return { statusCode: 404, message: `the last segment must be one of ${[...gitHosts.keys()].join(", ")}` };
  const refused = tooLarge(request);
  if (refused !== undefined) return refused;
  const proven = proveDelivery(gitHost, request, await readSecrets(host, ports));
  if ("answer" in proven) return proven.answer;
  const { "x-github-delivery": delivery } = request.headers;
  return wakeSources(proven.push, { ports, about: { host, delivery } });
}

/** Polls the Sources of any namespace that the push can change. */
export async function wakeSources(
  push: Push,
  { ports, about }: { readonly ports: WebhookPorts; readonly about: Readonly<Record<string, unknown>> },
): Promise<WebhookAnswer> {
  return pollSources(push, await sourcesAt(push, tableNow(ports.table, ports.clock)), { ports, about });
}

async function readSecrets(host: string, ports: WebhookPorts): Promise<readonly string[]> {
  const text = await ports.secrets.read(ports.secretName);
  const parsed = secretsOfHosts.safeParse(jsonOf(text));
  if (parsed.success) return Array.isArray(parsed.data) ? parsed.data : (parsed.data[host] ?? []);
  const names = [...gitHosts.keys()].join(", ");
  throw new StarlingError(
    `secret ${ports.secretName} does not hold a JSON list of one or two texts that are not empty, such as ["..."], or an object of such lists by host (${names})`,
    { code: otherCode("InvalidSecret"), retry: "permanent" },
  );
}

async function sourcesAt(push: Push, table: Table): Promise<readonly SourceRow[]> {
  const desired = new Map<string, RowKeyOf<"Source">>();
  for (const url of addressesOf(push) ?? []) {
    for (const { namespace, name } of await sourcesOf(url, table)) {
      desired.set(`${namespace}/${name}`, keys.object(namespace, "Source", name));
    }
  }
  const rows = await table.getMany([...desired.values()], { newer: "kept" });
  return rows.filter((row) => row.type === "Source");
}

async function sourcesOf(url: string, table: Table) {
  const range = ranges.repository(url);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  return entries.flatMap((entry) => keys.repository.parse(entry)?.source ?? []);
}
