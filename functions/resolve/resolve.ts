import { fetchArtifact } from "#functions/resolve/fetch-artifact.ts";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import { excerpt } from "#shared/domain/excerpt.ts";
import {
  breakTie,
  formatRevision,
  prefixesOf,
  type ResolvedReference,
  resolveReference,
} from "#shared/domain/git-reference.ts";
import { nextResolve } from "#shared/domain/next-resolve.ts";
import { dueAttributes, watchdogAt } from "#shared/domain/rows/due.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import type { Artifact, SourceRow, SourceStatus } from "#shared/domain/rows/object-rows.ts";
import { revisionRow } from "#shared/domain/rows/revision-row.ts";
import {
  askedRevision,
  decideFetch,
  diedMessage,
  type FetchDecision,
  isSameQuestion,
  restMessage,
} from "#shared/domain/source-fetch.ts";
import { announcementOf, failedStatus, fetchingStatus, resolvedStatus } from "#shared/domain/source-status.ts";
import { errorCode, errorMessage, isConflict, StarlingError } from "#shared/errors.ts";
import type { InvocationContext } from "#shared/lambda/sqs-handler.ts";
import type { Message, ResolveMessage } from "#shared/messages.ts";
import type {
  BlobStore,
  Clock,
  GitRemote,
  GitRepository,
  Ids,
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
  readonly ids: Ids;
  readonly log: Log;
}

/** Times a look is repeated because somebody wrote the row meanwhile. */
const ROUNDS = 3;
/** Of an invocation's time: for packing and storing the artifact, and for writing what came of it. */
const RESERVED_SHARE = 0.25;
/** Each costs a fetch of its own. */
const MAX_TIED_TAGS = 20;
/** Of what goes wrong: servers and libraries put into it what they like. */
const MAX_MESSAGE = 1000;
/** Somebody fetched and never said how it ended. */
const INTERRUPTED = "GitFetchInterrupted";
/** What the content of a revision is refused for. */
const refusals: ReadonlySet<string> = new Set(["GitTooLarge", "GitPathRefused"]);

/** One invocation's. */
interface Look {
  readonly id: string;
  readonly context: InvocationContext;
  /** What is left of the invocation when git has to be through. */
  readonly reservedMs: number;
  readonly ports: ResolvePorts;
}

/**
 * Looks at a Source's reference: one listing, and nothing more when it stands where it stood. Otherwise writes down that
 * it fetches, fetches the commit, stores the part as an artifact, pins it in the row, and tells every subject that uses
 * the Source. What somebody else fetches already is left to them; what nobody could fetch without dying rests.
 *
 * What goes wrong with git is written into the row, keeps the last good artifact, and is tried again with back-off; only
 * what goes wrong with the table or the queue is thrown.
 */
export async function resolveSource(
  message: ResolveMessage,
  ports: ResolvePorts,
  context: InvocationContext,
): Promise<void> {
  const reservedMs = context.getRemainingTimeInMillis() * RESERVED_SHARE;
  const look = { id: ports.ids.unique(), context, reservedMs, ports };
  for (let round = 1; ; round++) {
    const row = await ports.table.get<SourceRow>(keys.object(message.source.namespace, "Source", message.source.name));
    if (row === undefined || row.operations.suspended !== undefined) return;
    try {
      const looked = await lookAt(row, look);
      if (looked !== undefined) await conclude(looked.row, looked.status, ports);
      return;
    } catch (error) {
      // The spec may have changed under the attempt: look again, with the row as it is now.
      if (!isConflict(error) || round === ROUNDS) throw error;
    }
  }
}

interface Looked {
  /** As it is in the table now. */
  readonly row: SourceRow;
  readonly status: SourceStatus;
}

/** The status after one look; `undefined` when somebody else is at it. */
async function lookAt(row: SourceRow, look: Look): Promise<Looked | undefined> {
  const { ports } = look;
  const located = await attempt(row, look, () => locateWithCredentials(row, look));
  if ("conditions" in located) return { row, status: located };
  const revision = formatRevision(located.reference);
  const { artifact, observedReference, observedGeneration, refused } = row.status;
  const unmoved = observedReference === revision && observedGeneration === row.generation;
  const now = ports.clock.now();
  if (artifact !== undefined && unmoved) return { row, status: resolvedStatus(row, { artifact, revision }, now) };
  if (refused !== undefined && isSameQuestion(refused, askedRevision(row, revision))) {
    return { row, status: failedStatus(row, refused, now) };
  }
  const secondsLeft = look.context.getRemainingTimeInMillis() / 1000;
  const decision = decideFetch(row, revision, { id: look.id, now, secondsLeft });
  if (decision.kind === "leave") return undefined;
  if (decision.kind === "rest") {
    const { died } = decision;
    const failure = { code: INTERRUPTED, message: restMessage(died) };
    return { row, status: { ...failedStatus(row, failure, now), fetch: died } };
  }
  const fetching = await writeStart(row, decision, ports);
  const status = await attempt(fetching, look, async () => {
    const { repository, reference } = located;
    const fetched = await fetchArtifact({ row: fetching, repository, commit: reference.commit, revision }, ports);
    return resolvedStatus(fetching, { artifact: fetched, revision }, ports.clock.now());
  });
  return { row: fetching, status };
}

/** What git refuses becomes a status; it is refused for good when only another revision can help. */
async function attempt<T>(row: SourceRow, { ports }: Look, work: () => Promise<T>): Promise<T | SourceStatus> {
  try {
    return await work();
  } catch (error) {
    const failure = { code: errorCode(error), message: excerpt(errorMessage(error), MAX_MESSAGE) };
    ports.log.warn("source could not be resolved", { namespace: row.namespace, source: row.name, ...failure });
    const { fetch } = row.status;
    const isForGood = refusals.has(failure.code) && fetch !== undefined;
    const refused = isForGood ? { refused: askedRevision(row, fetch.revision) } : {};
    return failedStatus(row, { ...failure, ...refused }, ports.clock.now());
  }
}

/**
 * The row as it is while the commit is fetched, due again when this function is dead.
 * @throws ConflictError when somebody wrote it first.
 */
async function writeStart(
  row: SourceRow,
  { start, died }: Extract<FetchDecision, { kind: "start" }>,
  ports: ResolvePorts,
): Promise<SourceRow> {
  const failure = died === undefined ? undefined : { code: INTERRUPTED, message: diedMessage(died) };
  const status = fetchingStatus(row, start, failure);
  const next = timed({ ...row, status, version: row.version + 1 }, start.until);
  await ports.table.write([{ put: next, when: { version: row.version } }]);
  return next;
}

interface Located {
  readonly repository: GitRepository;
  readonly reference: ResolvedReference;
}

async function locateWithCredentials(row: SourceRow, { context, reservedMs, ports }: Look): Promise<Located> {
  // As it is compared with the host of the secret: what reads the text in another way would send it elsewhere.
  const url = new URL(row.spec.git.url).href;
  const credentials = await readCredentials(row, ports.secrets);
  const timeLeftMs = () => context.getRemainingTimeInMillis() - reservedMs;
  const repository = { url, timeLeftMs, ...(credentials === undefined ? {} : { credentials }) };
  return { repository, reference: await locate(row, repository, ports) };
}

async function locate(row: SourceRow, repository: GitRepository, ports: ResolvePorts): Promise<ResolvedReference> {
  const ref = row.spec.git.ref;
  const prefixes = prefixesOf(ref);
  const listed = prefixes.length === 0 ? [] : await ports.git.listRefs(repository, prefixes);
  const resolution = resolveReference(ref, listed);
  if (resolution.kind === "resolved") return resolution.reference;
  if (resolution.kind === "missing") throw notFound(`${repository.url}: ${resolution.message}`);
  const { tags } = resolution;
  if (tags.length > MAX_TIED_TAGS) {
    const [first] = tags;
    const found = `${tags.length} tags are the same version as ${first?.name}; at most ${MAX_TIED_TAGS} are compared`;
    throw notFound(`${repository.url}: ${found}; delete the others, or name one in spec.git.ref.tag`);
  }
  const dated = [];
  for (const tag of tags) {
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
