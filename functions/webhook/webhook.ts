import * as z from "zod";
import { type GithubPush, readGithubPush } from "#functions/webhook/github-push.ts";
import { isSignedByGithub } from "#functions/webhook/verify-signature.ts";
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
  /** Name of the secret that holds a JSON list of one or two texts. */
  readonly secretName: string;
}

export interface WebhookRequest {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes as they were sent. */
  readonly body: Uint8Array;
}

export interface WebhookAnswer {
  readonly statusCode: 200 | 202 | 400 | 401 | 413;
  readonly message: string;
}

/** GitHub sends up to 25 MB, but Starling reads only a few names; the next regular poll makes up for a refused push. */
const maxBodyBytes = 1_000_000;

const secretList = z.array(z.string().min(1)).min(1).max(2);

/**
 * Handles a push from GitHub. The signature is verified over the raw bytes before anything is read. The push is then a hint
 * to poll the Sources of the repository that can follow the reference. Nothing is written, so a replay costs one listing.
 * @throws StarlingError `SecretNotFound` or `InvalidSecret` when the operator has to act.
 */
export async function receiveGithubEvent(request: WebhookRequest, ports: WebhookPorts): Promise<WebhookAnswer> {
  if (request.body.length > maxBodyBytes) {
    return { statusCode: 413, message: `the body has more than ${maxBodyBytes} bytes` };
  }
  const secrets = await readSecrets(ports);
  if (!isSignedByGithub(request.body, request.headers["x-hub-signature-256"], secrets)) {
    return { statusCode: 401, message: "unauthorized" };
  }
  const event = request.headers["x-github-event"]?.toLowerCase();
  if (event === "ping") return { statusCode: 200, message: "pong" };
  if (event !== "push") return { statusCode: 202, message: "only push events are followed" };
  const push = readGithubPush(request.body, request.headers["content-type"] ?? "");
  if (push === undefined) return { statusCode: 400, message: "the body is no push event" };
  const messages = await sourcesFollowing(push, tableNow(ports.table, ports.clock));
  await ports.sender.send(messages);
  const delivery = request.headers["x-github-delivery"];
  ports.log.info("push received", { delivery, ref: push.ref, sources: messages.length });
  for (const { source } of messages)
    ports.log.info("a push requests a poll of a source", { kind: "Source", ...source });
  return { statusCode: 202, message: `requested polls of ${counted(messages.length, "source")}` };
}

async function readSecrets(ports: WebhookPorts): Promise<readonly string[]> {
  const text = await ports.secrets.read(ports.secretName);
  const parsed = secretList.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new StarlingError(
    `secret ${ports.secretName} does not hold a JSON list of one or two texts that are not empty, such as ["..."]`,
    { code: otherCode("InvalidSecret"), retry: "permanent" },
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function sourcesFollowing(push: GithubPush, table: Table): Promise<ResolveMessage[]> {
  const desired = new Map<string, RowKey>();
  for (const url of new Set(push.urls.flatMap((address) => normaliseGitUrl(address) ?? []))) {
    for (const { namespace, name } of await sourcesOf(url, table)) {
      desired.set(`${namespace}/${name}`, keys.object(namespace, "Source", name));
    }
  }
  const rows = await table.getMany([...desired.values()], { newer: "kept" });
  return rows
    .filter((row) => row.type === "Source")
    .filter((row) => row.operations.suspended === undefined && followsGit(row.spec, push))
    .map((row) => ({ to: "resolve", source: { namespace: row.namespace, name: row.name } }));
}

function followsGit({ git }: SourceSpec, push: GithubPush): boolean {
  return git !== undefined && mayFollow(git.ref, push);
}

async function sourcesOf(url: string, table: Table) {
  const range = ranges.repository(url);
  const entries = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  return entries.flatMap((entry) => keys.repository.parse(entry)?.source ?? []);
}
