import { fetchArtifact } from "#functions/resolve/fetch-artifact.ts";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import {
  breakTie,
  formatRevision,
  prefixesOf,
  type ResolvedReference,
  resolveReference,
} from "#shared/domain/git-reference.ts";
import { dueAttributes, watchdogAt } from "#shared/domain/rows/due.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import { type Artifact, nextResolve, type SourceRow, type SourceStatus } from "#shared/domain/rows/object-rows.ts";
import { revisionRow } from "#shared/domain/rows/revision-row.ts";
import { announcementOf, failedStatus, resolvedStatus } from "#shared/domain/source-status.ts";
import { errorCode, errorMessage, isConflict, StarlingError } from "#shared/errors.ts";
import type { Message, ResolveMessage } from "#shared/messages.ts";
import type {
  BlobStore,
  Clock,
  GitRemote,
  GitRepository,
  Log,
  MessageSender,
  SecretReader,
  Table,
  Write,
} from "#shared/ports.ts";

export interface ResolvePorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly git: GitRemote;
  readonly secrets: SecretReader;
  readonly clock: Clock;
  readonly log: Log;
}

/** Times a look is repeated because somebody wrote the row meanwhile. */
const ROUNDS = 3;

/**
 * Looks at a Source's reference: one listing, and nothing more when it stands where it stood. Otherwise fetches the
 * commit, stores the part as an artifact, pins it in the row, and tells every subject that uses the Source.
 *
 * What goes wrong with git is written into the row, keeps the last good artifact, and is tried again with back-off; only
 * what goes wrong with the table or the queue is thrown.
 */
export async function resolveSource(message: ResolveMessage, ports: ResolvePorts): Promise<void> {
  for (let round = 1; ; round++) {
    const row = await ports.table.get<SourceRow>(keys.object(message.source.namespace, "Source", message.source.name));
    if (row === undefined || row.operations.suspended !== undefined) return;
    const status = await attempt(row, ports);
    try {
      await conclude(row, status, ports);
      return;
    } catch (error) {
      // The spec may have changed under the attempt: look again, with the row as it is now.
      if (!isConflict(error) || round === ROUNDS) throw error;
    }
  }
}

/** The status after one attempt; nothing is written yet but the artifact, which nobody refers to before the row does. */
async function attempt(row: SourceRow, ports: ResolvePorts): Promise<SourceStatus> {
  try {
    const { url, credentials: named } = row.spec.git;
    const credentials = await readCredentials(named, ports.secrets);
    const repository = { url, ...(credentials === undefined ? {} : { credentials }) };
    const reference = await locate(row, repository, ports);
    const revision = formatRevision(reference);
    const { artifact, observedReference, observedGeneration } = row.status;
    const unmoved = observedReference === revision && observedGeneration === row.generation;
    if (artifact !== undefined && unmoved) return resolvedStatus(row, { artifact, revision }, ports.clock.now());
    const fetched = await fetchArtifact({ row, repository, commit: reference.commit, revision }, ports);
    return resolvedStatus(row, { artifact: fetched, revision }, ports.clock.now());
  } catch (error) {
    const failure = { code: errorCode(error), message: errorMessage(error) };
    ports.log.warn("source could not be resolved", { namespace: row.namespace, source: row.name, ...failure });
    return failedStatus(row, failure, ports.clock.now());
  }
}

async function locate(row: SourceRow, repository: GitRepository, ports: ResolvePorts): Promise<ResolvedReference> {
  const ref = row.spec.git.ref;
  const prefixes = prefixesOf(ref);
  const listed = prefixes.length === 0 ? [] : await ports.git.listRefs(repository, prefixes);
  const resolution = resolveReference(ref, listed);
  if (resolution.kind === "resolved") return resolution.reference;
  if (resolution.kind === "missing") throw notFound(`${repository.url}: ${resolution.message}`);
  const dated = [];
  for (const tag of resolution.tags) {
    const { commit } = await ports.git.fetchTree(repository, { oid: tag.commit, paths: [] });
    dated.push({ ...tag, committedAt: commit.committedAt });
  }
  const chosen = ref === undefined ? undefined : breakTie(ref, dated);
  if (chosen === undefined) throw notFound(`${repository.url}: none of its tags can be chosen`);
  return chosen;
}

function notFound(message: string): StarlingError {
  return new StarlingError(message, { code: "GitRefNotFound", retry: "permanent" });
}

/**
 * Writes the status, tells the subjects when the artifact is another, and then writes that they were told. A worker
 * that dies between leaves a row that is due and says so.
 */
async function conclude(row: SourceRow, status: SourceStatus, ports: ResolvePorts): Promise<void> {
  const now = ports.clock.now();
  const artifact = status.artifact;
  const news = artifact !== undefined && status.announced !== announcementOf(artifact);
  const next = timed({ ...row, status, version: row.version + 1 }, news ? watchdogAt(now, 0) : undefined);
  const writes: Write[] = [{ put: next, when: { version: row.version } }];
  if (artifact !== undefined && isOther(row.status.artifact, artifact)) {
    writes.push({ put: revisionRow(row, artifact, now.toISOString()) });
  }
  await ports.table.write(writes);
  if (!news) return;
  await ports.sender.send(await subjectsOf(row, ports.table));
  const told = { ...next, status: { ...status, announced: announcementOf(artifact) }, version: next.version + 1 };
  try {
    await ports.table.write([{ put: timed(told, undefined), when: { version: next.version } }]);
  } catch (error) {
    // Whoever wrote the row meanwhile has asked for another look, which tells them once more.
    if (!isConflict(error)) throw error;
  }
}

function isOther(before: Artifact | undefined, after: Artifact): boolean {
  return before === undefined || announcementOf(before) !== announcementOf(after);
}

/** `at` while there is something left to do now; else the Source's own interval decides. */
function timed(row: SourceRow, at: string | undefined): SourceRow {
  const { dueShard: _shard, dueKey: _key, dispatches: _dispatches, ...rest } = row;
  const due = at ?? nextResolve(rest);
  return due === undefined ? rest : { ...rest, ...dueAttributes(rest, due) };
}

async function subjectsOf(row: SourceRow, table: Table): Promise<Message[]> {
  const messages: Message[] = [];
  let after: string | undefined;
  do {
    const { pk } = keys.uses(row, { namespace: row.namespace, kind: "Sync", name: "" });
    const page = await table.query({ pk, ...(after === undefined ? {} : { after }) });
    for (const { sk } of page.items) {
      const [kind = "", name = ""] = sk.split("#");
      if (kind !== "SyncGroup" && kind !== "Sync") continue;
      messages.push({ to: "rollout", subject: { namespace: row.namespace, kind, name } });
    }
    after = page.next;
  } while (after !== undefined);
  return messages;
}
