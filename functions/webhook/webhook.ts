import * as z from "zod";
import { jsonOf, type Push, type WebhookRequest } from "#functions/webhook/hosts/git-host.ts";
import { gitHosts } from "#functions/webhook/hosts/git-hosts.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { counted } from "#shared/base/counted.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { RowKey } from "#shared/fleet/rows/row.ts";
import type { ResolveMessage } from "#shared/messages.ts";
import type { Log, MessageSender, SecretReader, Table } from "#shared/ports.ts";
import { mayFollow } from "#shared/source/git-reference.ts";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

export interface WebhookPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly secrets: SecretReader;
  readonly clock: Clock;
  readonly log: Log;
  /** Name of the secret that holds a JSON list of one or two texts, for all hosts or for each host. */
  readonly secretName: string;
}

export interface WebhookAnswer {
  readonly statusCode: 200 | 202 | 400 | 401 | 404 | 413;
  readonly message: string;
}

/** Hosts send up to 25 MB, but Starling reads only a few names; the next regular poll makes up for a refused push. */
const maxBodyBytes = 1_000_000;

const secretList = z.array(z.string().min(1)).min(1).max(2);
const secretsOfHosts = z.union([
  secretList,
  z
    .strictObject(Object.fromEntries([...gitHosts.keys()].map((host) => [host, secretList.optional()])))
    .refine((lists) => Object.keys(lists).length > 0),
]);

/**
 * Handles a push from a git host. Its sender is verified over the raw bytes before anything is read. The push is then a
 * hint to poll the Sources of the repository that can follow a reference of it. Nothing is written, so a replay costs one
 * listing.
 * @param host - the last segment of the URL. It alone decides how the sender is verified.
 * @throws StarlingError `SecretNotFound` or `InvalidSecret` when the operator has to act.
 */
export async function receiveEvent(host: string, request: WebhookRequest, ports: WebhookPorts): Promise<WebhookAnswer> {
  const gitHost = gitHosts.get(host);
  if (gitHost === undefined)
    return { statusCode: 404, message: `the last segment must be one of ${[...gitHosts.keys()].join(", ")}` };
  if (request.body.length > maxBodyBytes) {
    return { statusCode: 413, message: `the body has more than ${maxBodyBytes} bytes` };
  }
  const secrets = await readSecrets(host, ports);
  if (!gitHost.isGenuine(request, secrets)) {
    if (secrets.length > 0 && gitHost.isUnsignedPing?.(request) === true)
      return { statusCode: 200, message: "pong; this host does not sign tests, so the secret is not tested" };
    return { statusCode: 401, message: "unauthorized" };
  }
  const push = gitHost.read(request);
  if (push === "ping") return { statusCode: 200, message: "pong" };
  if (push === "other") return { statusCode: 202, message: "only push events are followed" };
  if (push === undefined) return { statusCode: 400, message: "the body is no push event" };
  const messages = await sourcesFollowing(push, tableNow(ports.table, ports.clock));
  await ports.sender.send(messages);
  const { "x-github-delivery": delivery } = request.headers;
  ports.log.info("push received", { host, delivery, refs: push.refs?.slice(0, loggedRefs), sources: messages.length });
  for (const { source } of messages)
    ports.log.info("a push requests a poll of a source", { kind: "Source", ...source });
  return { statusCode: 202, message: `requested polls of ${counted(messages.length, "source")}` };
}

const loggedRefs = 10;

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

async function sourcesFollowing(push: Push, table: Table): Promise<ResolveMessage[]> {
  const desired = new Map<string, RowKey>();
  for (const url of new Set(push.urls.flatMap((address) => normaliseGitUrl(address) ?? []))) {
    for (const { namespace, name } of await sourcesOf(url, table)) {
      desired.set(`${namespace}/${name}`, keys.object(namespace, "Source", name));
    }
  }
  const rows = await table.getMany([...desired.values()], { newer: "kept" });
  return rows
    .filter((row) => row.type === "Source")
    .filter((row) => row.operations.suspended === undefined && follows(row.spec, push))
    .map((row) => ({ to: "resolve", source: { namespace: row.namespace, name: row.name } }));
}

function follows({ git }: SourceSpec, { refs, ...push }: Push): boolean {
  if (refs === undefined) return true;
  return git !== undefined && refs.some((ref) => mayFollow(git.ref, { ...push, ref }));
}

async function sourcesOf(url: string, table: Table) {
  const range = ranges.repository(url);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  return entries.flatMap((entry) => keys.repository.parse(entry)?.source ?? []);
}
