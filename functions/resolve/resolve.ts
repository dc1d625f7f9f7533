import type { OwnRole } from "#functions/resolve/aws-login.ts";
import { fetchArtifact } from "#functions/resolve/fetch-artifact.ts";
import { untilOf } from "#functions/resolve/host-limits.ts";
import { findIncluded, includedQuestion } from "#functions/resolve/included.ts";
import { locate } from "#functions/resolve/locate.ts";
import { bringBack, isLostArtifact, keepArtifact, type Missed } from "#functions/resolve/lost-artifact.ts";
import { resolvePin } from "#functions/resolve/resolve-pin.ts";
import { retainRevisions } from "#functions/resolve/retain-revisions.ts";
import { followedText, SharedUpstream } from "#functions/resolve/share-upstream.ts";
import {
  conclude,
  type Settle,
  type SourceWritePorts,
  wantAgain,
  writeStart,
} from "#functions/resolve/source-writes.ts";
import { storedAmong, storedRevision } from "#functions/resolve/stored-revision.ts";
import type { BucketPorts } from "#functions/resolve/upstreams/locate-bucket.ts";
import type { Located } from "#functions/resolve/upstreams/upstream.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorCode, errorMessage, isConflict } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, IncludedArtifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import { movedMessage, movedTag } from "#shared/fleet/sources/followed-tags.ts";
import { madeFrom, pinnedRevision } from "#shared/fleet/sources/pinned-revision.ts";
import { isRevision } from "#shared/fleet/sources/revision-at.ts";
import {
  askedRevision,
  decideFetch,
  interrupted,
  isFetchedByAnother,
  isSameQuestion,
  restMessage,
} from "#shared/fleet/sources/source-fetch.ts";
import {
  failedSourceStatus,
  keptStatus,
  resolvedStatus,
  type SourceFailure,
  signatureCodes,
} from "#shared/fleet/sources/source-status.ts";
import type { Delivered, InvocationContext } from "#shared/lambda/sqs-handler.ts";
import { pollMessage, type ResolveMessage } from "#shared/messages.ts";
import type { BlobStore, GitRemote, HttpRemote, Ids, Log, MessageSender, SecretReader, Table } from "#shared/ports.ts";

export interface ResolvePorts extends BucketPorts, Pick<SourceWritePorts, "events"> {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly git: GitRemote;
  readonly http: HttpRemote;
  readonly secrets: SecretReader;
  readonly role: OwnRole;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Number of times that a poll is repeated because another writer changed the row. */
const rounds = 5;
/** Part of an invocation's time that is kept for packing and storing the artifact, and for writing the result. */
const reservedShare = 0.25;
/** Part of an invocation's time that another poll, or that of another Source, needs at least. */
const againShare = 0.5;
/** Longest error text that is kept; servers and libraries put any text into it. */
const maxMessage = 1000;
/** Errors that refuse the files of a revision. */
const refusals: ReadonlySet<string> = new Set([
  "GitTooLarge",
  "GitPathRefused",
  "UpstreamTooLarge",
  "ChecksumMismatch",
  "ArchiveInvalid",
  "IncludeConflict",
  ...signatureCodes,
]);

type Included = readonly IncludedArtifact[];

/** Errors of an upstream that is away. */
const awayCodes: ReadonlySet<string> = new Set(["UpstreamUnavailable", "HostSilent"]);

/** The request and the ports of one invocation. */
interface Poll {
  readonly id: string;
  readonly message: ResolveMessage;
  readonly context: InvocationContext;
  /** Time of the whole invocation. */
  readonly givenMs: number;
  readonly ports: ResolvePorts;
}

/**
 * Polls the references of a Source, and of those besides it, with one listing, and does nothing more for a reference that
 * has not moved. When it has moved, the function records that it fetches, fetches the files, stores the part as an
 * artifact, pins it in the row, and informs every owner that uses the Source. While another invocation fetches for the
 * Source, that one is asked to poll again at its end, so that the newest of many pushes is fetched. A revision at which
 * invocations died waits for a back-off.
 *
 * A message that names a revision at which templates stay is about that one alone.
 *
 * A failure of the upstream is written into the row, keeps the last good artifact, and is tried again with back-off. Only a failure
 * of the table or the queue is thrown.
 */
export async function resolveSource(
  message: ResolveMessage & Partial<Pick<Delivered, "receives">>,
  ports: ResolvePorts,
  context: InvocationContext,
): Promise<void> {
  const { source, besides = [], receives = 1 } = message;
  const sources = [source, ...besides];
  // An invocation that died may have died of one of them.
  if (receives > 1 && besides.length > 0) return ports.sender.send(sources.flatMap((each) => pollMessage([each])));
  const poll = { id: ports.ids.unique(), message, context, givenMs: context.getRemainingTimeInMillis(), ports };
  const { pin } = message;
  if (pin !== undefined) return resolvePin({ source, revision: pin, timeLeftMs: timeLeftOf(poll) }, ports);
  const conflicts = new Map<string, number>();
  for (let left: readonly Named[] = sources, round = 1; left.length > 0; round++) {
    // The rows are read before the listing: one that is changed meanwhile may know more, and is not overwritten.
    const rows = await readRows(left, ports);
    const upstream = rows.length > 1 ? new SharedUpstream(rows, ports) : undefined;
    const again: SourceRow[] = [];
    for (const [index, row] of rows.entries()) {
      if (index > 0 && isHalfOver(poll)) return ports.sender.send(pollMessage([...again, ...rows.slice(index)]));
      const mine = upstream === undefined ? poll : { ...poll, ports: { ...ports, ...upstream.askedBy(row) } };
      try {
        if (round === 1) await retainRevisions(row, ports);
        // The row stays due when the time does not suffice.
        if ((await pollRow(row, mine)) && !isHalfOver(poll)) again.push(row);
      } catch (error) {
        const name = `${row.namespace}/${row.name}`;
        const met = (conflicts.get(name) ?? 0) + 1;
        conflicts.set(name, met);
        // The spec may have changed during the attempt: the poll is repeated with the present row.
        if (isConflict(error) && met < rounds) again.push(row);
        else if (sources.length === 1) throw error;
        else await ports.sender.send(pollMessage([row]));
      }
    }
    left = again;
  }
}

type Named = ResolveMessage["source"];

/** The rows of the Sources that exist, those with the same reference one after another. */
async function readRows(sources: readonly Named[], { table, clock }: ResolvePorts): Promise<readonly SourceRow[]> {
  const desired = sources.map(({ namespace, name }) => keys.object(namespace, "Source", name));
  const [first] = desired;
  const stored =
    first === undefined || desired.length > 1
      ? await table.getMany(desired, { newer: "kept" })
      : [await table.get(first)];
  const rows = stored.flatMap((row) => (row === undefined || isNewer(row) ? [] : [rowAt(row, clock.now())]));
  return rows.length < 2 ? rows : rows.toSorted((a, b) => (followedText(a) < followedText(b) ? -1 : 1));
}

function isHalfOver({ context, givenMs }: Poll): boolean {
  return context.getRemainingTimeInMillis() < givenMs * againShare;
}

/** @returns whether another poll was requested meanwhile. @throws ConflictError when another writer was faster. */
async function pollRow(row: SourceRow, poll: Poll): Promise<boolean> {
  const { ports, message } = poll;
  const isSuspended = row.operations.suspended !== undefined;
  const missed = missedOf(row, message);
  if (missed !== undefined && !isSuspended) {
    await bringBack(row, { ...missed, timeLeftMs: timeLeftOf(poll) }, ports);
    return false;
  }
  if (isSuspended) await keepSuspended(row, poll);
  else if (isFetchedByAnother(row, fetcherOf(poll))) await wantAgain(row, ports);
  else {
    const polled = await pollSource(row, poll);
    return conclude(polled.row, polled.settle, ports);
  }
  return false;
}

/** Asks nothing of the upstream: the artifact stays, and a missing one is reported. */
async function keepSuspended(row: SourceRow, poll: Poll): Promise<void> {
  const { artifact, lost } = await storedArtifact(row, poll);
  const isNew = artifact !== row.status.artifact || lost !== row.status.lost;
  const { pending = [] } = row.status.events ?? {};
  if (artifact !== undefined && isNew)
    await conclude(row, (now) => keptStatus(now, { artifact, lost }, poll.ports.clock.now()), poll.ports);
  else if (pending.length > 0) await conclude(row, ({ status }) => status, poll.ports);
}

interface Polled {
  /** The row as it is in the table now. */
  readonly row: SourceRow;
  readonly settle: Settle;
}

async function pollSource(row: SourceRow, poll: Poll): Promise<Polled> {
  const { ports } = poll;
  const { clock } = ports;
  // The record of a fetch that runs, or died, is kept.
  const failedBefore = (now: SourceRow, failure: SourceFailure) => {
    const { fetch } = now.status;
    return { ...failedSourceStatus(now, failure, clock.now()), ...defined({ fetch }) };
  };
  const before = await attempt(row, poll, async () => ({ included: await findIncluded(row, ports.table) }));
  if (isFailure(before)) {
    const kept = await formerArtifact(row, await storedArtifact(row, poll), poll);
    return { row, settle: (now) => failedBefore(withKept(now, kept), before) };
  }
  const { included } = before;
  const pinned = await pinnedArtifact(row, included, poll);
  if (pinned !== undefined) {
    const observed = observedOf(pinned, included);
    return { row, settle: (now) => resolvedStatus(now, { artifact: pinned, observed }, clock.now()) };
  }
  const found = await attempt(row, poll, async () => {
    const located = await locate(row, { timeLeftMs: timeLeftOf(poll) }, ports);
    return { located, ...(await storedArtifact(row, poll)) };
  });
  if (isFailure(found)) {
    const stored = await versionWithoutUpstream(row, { included, code: found.code }, ports);
    if (stored === undefined) return { row, settle: (now) => failedBefore(now, found) };
    const observed = observedOf(stored, included);
    return { row, settle: (now) => resolvedStatus(now, { artifact: stored, observed }, clock.now()) };
  }
  const { located, lost, artifact } = found;
  const { revision } = located;
  const moved = row.spec.immutableTags === true ? movedTag(row, revision) : undefined;
  if (moved !== undefined) {
    const failure: SourceFailure = { code: "TagMoved", message: movedMessage(row.spec, moved) };
    const kept = await formerArtifact(row, { artifact, lost }, poll);
    return { row, settle: (now) => failedBefore(withKept(now, kept), failure) };
  }
  const observed = observedOf(located, included);
  const { observedReference, observedGeneration, refused } = row.status;
  const unmoved = observedReference === observed && observedGeneration === row.generation;
  if (artifact !== undefined && unmoved && lost === undefined) {
    const { listing } = located;
    return { row, settle: (now) => resolvedStatus(now, { artifact, observed, listing }, clock.now()) };
  }
  if (refused !== undefined && isSameQuestion(refused, askedRevision(row, observed))) {
    const again = { ...refused, code: otherCode(refused.code) };
    return { row, settle: (now) => failedSourceStatus(now, again, clock.now()) };
  }
  const decision = decideFetch(row, revision, fetcherOf(poll));
  if (decision.kind === "rest") {
    const failure: SourceFailure = { code: interrupted, message: restMessage(decision.died) };
    return { row, settle: (now) => failedBefore(now, failure) };
  }
  const fetching = await writeStart(row, { decision, lost }, ports);
  return { row: fetching, settle: await fetchLocated(fetching, { located, included }, poll) };
}

function withKept(row: SourceRow, kept: StoredArtifact): SourceRow {
  const { lost: _lost, ...before } = row.status;
  return { ...row, status: { ...before, ...defined(kept) } };
}

/**
 * The stored artifact of the commit, the digest or the checksum that the spec names: it is what the upstream would answer,
 * and nobody is asked for it.
 */
async function pinnedArtifact(row: SourceRow, included: Included, poll: Poll): Promise<Artifact | undefined> {
  const pinned = pinnedRevision(row.spec);
  if (pinned?.changes !== "never") return undefined;
  const { revision } = pinned;
  const isPresent = row.status.artifact?.madeFrom === madeFrom(row.spec, revision, included);
  const { artifact, lost } = isPresent
    ? await storedArtifact(row, poll)
    : { artifact: await storedRevision(row, { revision, included }, poll.ports), lost: undefined };
  return artifact === undefined || lost !== undefined ? undefined : { ...artifact, revision };
}

/**
 * The stored version of a chart, for the time in which its repository cannot be asked whether it replaced the version; or
 * the stored version of a push that is forgotten.
 */
async function versionWithoutUpstream(
  row: SourceRow,
  { included, code }: { readonly included: Included; readonly code: string },
  ports: ResolvePorts,
): Promise<Artifact | undefined> {
  const { spec } = row;
  const version = spec.external?.version;
  if (version !== undefined && code === "UpstreamNotFound") {
    const isVersion = ({ revision, madeFrom: made }: Artifact) =>
      isRevision(spec, revision, version) && made === madeFrom(spec, revision, included);
    return storedAmong(row, isVersion, ports);
  }
  if (!awayCodes.has(code)) return undefined;
  const pinned = pinnedRevision(spec);
  const { revision } = pinned ?? {};
  if (pinned?.changes !== "rarely" || revision === undefined) return undefined;
  return storedRevision(row, { revision, included }, ports);
}

/** The artifact that a Source keeps although it may not have the next one: if it is lost, it is fetched by its own revision. */
async function formerArtifact(row: SourceRow, { artifact, lost }: StoredArtifact, poll: Poll): Promise<StoredArtifact> {
  if (artifact === undefined || lost === undefined) return { artifact, lost };
  const { ports } = poll;
  await bringBack(row, { lost, revision: artifact.revision, timeLeftMs: timeLeftOf(poll) }, ports);
  return { artifact, lost: (await isLostArtifact(artifact.digest, ports.blobs)) ? lost : undefined };
}

/** Equal while the same question has the same answer. */
function observedOf({ revision, tag }: Pick<Located, "revision" | "tag">, included: Included): string {
  const own = tag === undefined ? revision : `${revision} tag ${tag}`;
  const others = includedQuestion(included);
  return others === undefined ? own : `${own} with ${others}`;
}

function fetcherOf({ id, context, ports }: Poll) {
  return { id, now: ports.clock.now(), secondsLeft: context.getRemainingTimeInMillis() / 1000 };
}

function timeLeftOf({ context, givenMs }: Poll): () => number {
  return () => context.getRemainingTimeInMillis() - givenMs * reservedShare;
}

/** A former artifact that a renderer misses; a poll checks the present one. */
function missedOf({ status }: SourceRow, { lost, revision }: ResolveMessage): Missed | undefined {
  if (lost === undefined || revision === undefined || lost === status.artifact?.digest) return undefined;
  return { lost, revision };
}

interface StoredArtifact {
  readonly artifact: Artifact | undefined;
  /** Digest of the artifact when it is missing. */
  readonly lost: string | undefined;
}

/**
 * Keeps the artifact of a Source: stores it again when it is old, and checks that it exists when a renderer did not find
 * it and when people ask for a reconcile.
 */
async function storedArtifact({ status, operations }: SourceRow, { message, ports }: Poll): Promise<StoredArtifact> {
  const { artifact, lost, handledReconcile } = status;
  if (artifact === undefined || lost === artifact.digest) return { artifact, lost };
  const isAsked = message.lost === artifact.digest || operations.reconcile?.number !== handledReconcile;
  if (isAsked && (await isLostArtifact(artifact.digest, ports.blobs))) return { artifact, lost: artifact.digest };
  const kept = await keepArtifact(artifact, ports);
  return kept === undefined ? { artifact, lost: artifact.digest } : { artifact: kept, lost: undefined };
}

async function fetchLocated(
  row: SourceRow,
  { located, included }: { readonly located: Located; readonly included: Included },
  poll: Poll,
): Promise<Settle> {
  const fetched = await attempt(row, poll, () => fetchArtifact(row, { located, included }, poll.ports));
  const { clock } = poll.ports;
  if (!isFailure(fetched)) {
    const read = observedOf({ ...located, revision: fetched.revision }, included);
    const { listing } = located;
    return (now) => resolvedStatus(now, { artifact: fetched, observed: read, listing }, clock.now());
  }
  const observed = observedOf(located, included);
  // An upload is kept for a day, and what was made of it for as long as any other artifact.
  const isExternal = row.spec.external !== undefined && fetched.code === "ArtifactGone";
  const stored = isExternal
    ? await storedRevision(row, { revision: located.revision, included }, poll.ports)
    : undefined;
  if (stored !== undefined)
    return (now) => resolvedStatus(now, { artifact: { ...stored, revision: located.revision }, observed }, clock.now());
  // Only another revision can end this failure, or a signature that comes after the revision.
  const lasts = refusals.has(fetched.code) && !(located.isSignedApart === true && signatureCodes.has(fetched.code));
  const refused = lasts ? { refused: askedRevision(row, observed) } : {};
  return (now) => failedSourceStatus(now, { ...fetched, ...refused }, clock.now());
}

type Failure = SourceFailure & { readonly kind: "failure" };

/** Turns an error into a status. */
async function attempt<T extends object>(
  row: SourceRow,
  { ports }: Poll,
  work: () => Promise<T>,
): Promise<T | Failure> {
  try {
    return await work();
  } catch (error) {
    const limitedUntil = untilOf(error)?.toISOString();
    const failure = {
      code: errorCode(error),
      message: excerpt(errorMessage(error), maxMessage),
      ...defined({ limitedUntil }),
    };
    ports.log.warn("source could not be resolved", {
      kind: "Source",
      namespace: row.namespace,
      name: row.name,
      ...failure,
    });
    return { kind: "failure", ...failure };
  }
}

function isFailure(came: object): came is Failure {
  return "kind" in came && came.kind === "failure";
}
