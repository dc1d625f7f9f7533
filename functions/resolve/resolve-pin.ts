/** Finds a revision of a Source at which templates stay, and keeps its artifact for as long as a template names it. */
import { fetchArtifact } from "#functions/resolve/fetch-artifact.ts";
import { untilOf } from "#functions/resolve/host-limits.ts";
import { findIncluded } from "#functions/resolve/included.ts";
import { type LocatePorts, locate } from "#functions/resolve/locate.ts";
import { keepArtifact } from "#functions/resolve/lost-artifact.ts";
import { storedAmong } from "#functions/resolve/stored-revision.ts";
import { ownersUsing } from "#shared/adapters/source-users.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage, isConflict, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import { templatePins } from "#shared/fleet/kinds/template-sources.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { backoffSeconds, backoffSecondsAfter, due, jittered, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type PinRow, pinWakeUp } from "#shared/fleet/rows/pin-row.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import { movedMessage, movedTag } from "#shared/fleet/sources/followed-tags.ts";
import { isMadeFrom } from "#shared/fleet/sources/pinned-revision.ts";
import { isRevision, specAt } from "#shared/fleet/sources/revision-at.ts";
import { announcementOf } from "#shared/fleet/sources/source-status.ts";
import type { BlobStore, Log, MessageSender, Table } from "#shared/ports.ts";

export interface PinPorts extends LocatePorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly log: Log;
}

interface PinRequest {
  readonly source: { readonly namespace: string; readonly name: string };
  readonly revision: string;
  readonly timeLeftMs: () => number;
}

const day = 86_400;
/** Longest error text that is kept. */
const maxMessage = 1000;
/** Revisions that a message names. */
const mostNamed = 5;
/** Revisions that are looked through for these. */
const mostRead = 50;
const ownersAtOnce = 100;

/**
 * Looks for the revision in the Source's history, and then at its upstream, which is verified as the Source demands. The
 * owners that name it are informed of what comes of it. A revision that nobody names any more is forgotten.
 * @throws ConflictError when another writer was faster; the row is still due then.
 */
export async function resolvePin(request: PinRequest, ports: PinPorts): Promise<void> {
  const { source, revision } = request;
  const { table, clock } = ports;
  const key = keys.pin(source, revision);
  const sourceKey = keys.object(source.namespace, "Source", source.name);
  const row = await table.get(key);
  if (row === undefined) return;
  const owners = await ownersAt(request, table);
  if (owners.length === 0) return forget(row, table);
  const stored = await table.get(sourceKey);
  if (stored === undefined) {
    await table.write([{ put: due(nextOf(row), later(clock.now(), day)), when: { version: row.version } }]);
    return;
  }
  const found = await find(rowAt(stored, clock.now()), { row, request }, ports);
  for (let at = { row, owners }; ; ) {
    try {
      return await settle(at, found, ports);
    } catch (error) {
      // A fetch takes long, and somebody else may have named the revision meanwhile. The artifact is the same for all.
      const { artifact } = found.result;
      if (!isConflict(error) || artifact === undefined) throw error;
      const [fresh, now] = [await table.get(key), await table.get(sourceKey)];
      if (fresh === undefined || now === undefined || !isSameQuestion(stored, now)) throw error;
      // A tag that moves between two checks at one time stays where the first one found it.
      if (fresh.artifact !== undefined && !isAmong(fresh.artifact, [row.artifact, artifact])) throw error;
      at = { row: fresh, owners: await ownersAt(request, table) };
    }
  }
}

function isAmong(artifact: Artifact, others: readonly (Artifact | undefined)[]): boolean {
  return others.some((other) => other !== undefined && announcementOf(other) === announcementOf(artifact));
}

/** Whether a Source is the same, with the same spec and the same requests of people. */
function isSameQuestion(before: SourceRow, after: SourceRow): boolean {
  const asked = ({ uid, generation, operations }: SourceRow) =>
    [uid, generation, operations.reconcile?.number, operations.suspended?.number].join();
  return asked(before) === asked(after);
}

/** Writes what was found, and informs the owners when it is news. @throws ConflictError when another writer was faster. */
async function settle(
  { row, owners }: { readonly row: PinRow; readonly owners: readonly Owner[] },
  found: Found,
  { table, sender, clock }: PinPorts,
): Promise<void> {
  const { failure: _failure, ...before } = nextOf(row);
  const next: PinRow = { ...before, ...found.result };
  const announced = newsOf(next);
  const settled = due({ ...next, ...defined({ announced }) }, found.again);
  if (announced === row.announced) {
    await table.write([{ put: settled, when: { version: row.version } }]);
    return;
  }
  // An invocation that dies here leaves a row that is due, and still has its owners to inform.
  const unannounced = due(next, watchdogAt(clock.now(), 0));
  await table.write([{ put: unannounced, when: { version: row.version } }]);
  await sender.send(owners.map((owner) => ({ to: "rollout", owner, clusters: [] })));
  await table.write([{ put: nextOf(settled), when: { version: unannounced.version } }]);
}

function nextOf(row: PinRow): PinRow {
  return { ...row, version: row.version + 1 };
}

function newsOf({ artifact, failure }: PinRow): string | undefined {
  return failure === undefined ? artifact && announcementOf(artifact) : `${failure.code} ${failure.message}`;
}

/** Every revision of the Source is looked at once more: another spec makes other artifacts, and a push may bring one. */
export async function wakePins(
  source: PinRequest["source"],
  which: (row: PinRow) => boolean,
  { table, clock }: Pick<PinPorts, "table" | "clock">,
): Promise<void> {
  for await (const row of allItems((start) => table.query({ ...ranges.pins(source), newer: "kept", ...start }))) {
    if (isNewer(row) || !which(row)) continue;
    try {
      await table.write([pinWakeUp(row, clock.now())]);
    } catch (error) {
      // It is looked at now, or forgotten.
      if (!isConflict(error)) throw error;
    }
  }
}

async function forget(row: PinRow, table: Table): Promise<void> {
  try {
    await table.write([{ delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } }]);
  } catch (error) {
    // Somebody has asked for it anew.
    if (!isConflict(error)) throw error;
  }
}

/** The groups and Syncs that have a template at this revision. */
async function ownersAt({ source, revision }: PinRequest, table: Table): Promise<readonly Owner[]> {
  const owners = await ownersUsing(source, table);
  const found: Owner[] = [];
  for (const part of inParts(owners, ownersAtOnce)) {
    const rows = await table.getMany(
      part.map(({ namespace, kind, name }) => keys.object(namespace, kind, name)),
      { newer: "kept" },
    );
    for (const row of rows) {
      // An owner that a newer version wrote may name it.
      const owner = part.find(({ namespace, kind, name }) => keys.object(namespace, kind, name).sk === row.sk);
      if (isNewer(row)) found.push(...(owner === undefined ? [] : [owner]));
      else if (
        row.operations.deletion === undefined &&
        templatePins(relationOf(row).templates).some((pin) => pin.source === source.name && pin.revision === revision)
      )
        found.push({ namespace: row.namespace, kind: row.type, name: row.name });
    }
  }
  return found;
}

interface Found {
  readonly result: Pick<PinRow, "artifact" | "failure">;
  /** When it is looked at again. */
  readonly again: string;
}

interface Finding {
  readonly row: PinRow;
  readonly request: PinRequest;
}

async function find(source: SourceRow, finding: Finding, ports: PinPorts): Promise<Found> {
  const { row, request } = finding;
  const now = ports.clock.now();
  try {
    const artifact = await artifactOf(source, finding, ports);
    return { result: { artifact }, again: later(now, jittered(day, `${row.pk} ${row.sk}`)) };
  } catch (error) {
    const code = errorCode(error);
    const failures = (row.failure?.failures ?? 0) + 1;
    const cut = code === "GitRefNotFound" && cutCommit.test(request.revision) ? ": a commit has 40 digits" : "";
    const message = excerpt(`${causeOf(error)}${cut}; ${await storedText(source, ports.table)}`, maxMessage);
    const { namespace, name } = source;
    const about = { kind: "Source", namespace, name, revision: request.revision, code, error: message };
    ports.log.warn("a revision that a template names cannot be used", about);
    const isAway = error instanceof StarlingError && error.retry === "transient";
    const tried = later(now, isAway ? backoffSeconds(failures) : backoffSecondsAfter(failures));
    const limited = untilOf(error)?.toISOString() ?? "";
    return { result: { failure: { code, message, failures } }, again: limited > tried ? limited : tried };
  }
}

/** @throws StarlingError that says why there is none. */
async function artifactOf(
  source: SourceRow,
  { row, request: { revision: text, timeLeftMs } }: Finding,
  ports: PinPorts,
): Promise<Artifact> {
  const { spec, status } = source;
  const { artifact: known } = row;
  // A tag that was found stays at its commit, also when another spec makes another artifact of it.
  const asked = known?.origin === addressOf(spec) ? known.revision : text;
  const isDesired = (artifact: Artifact) => isMadeFrom(spec, artifact) && isRevision(spec, artifact.revision, asked);
  for (const artifact of [known, status.lost === undefined ? status.artifact : undefined]) {
    if (artifact === undefined || !isMadeFrom(spec, artifact)) continue;
    const kept = artifact === known || isDesired(artifact) ? await keepArtifact(artifact, ports) : undefined;
    if (kept !== undefined) return kept;
  }
  const stored = await storedAmong(source, isDesired, ports);
  if (stored !== undefined) return stored;
  if (source.operations.suspended !== undefined)
    throw notStored("it is not stored, and the Source is suspended; resume it");
  const at = specAt(spec, asked);
  if (typeof at === "string") throw notStored(at);
  const { listing: _listing, ...seen } = status;
  const exact: SourceRow = { ...source, spec: at, status: seen };
  const located = await locate(exact, { timeLeftMs }, ports);
  if (!isRevision(at, located.revision, asked))
    throw notStored(`its upstream has ${located.revision} instead; correct revision`);
  const moved = spec.immutableTags === true ? movedTag(exact, located.revision) : undefined;
  if (moved !== undefined) {
    throw new StarlingError(movedMessage(spec, moved), { code: "TagMoved", retry: "permanent" });
  }
  const fetched = await fetchArtifact(exact, { located, included: await findIncluded(source, ports.table) }, ports);
  return asked === text ? fetched : { ...fetched, revision: asked };
}

function notStored(message: string): StarlingError {
  return new StarlingError(message, { code: "RevisionNotStored", retry: "permanent" });
}

/** The newest revisions that a template could name instead. */
async function storedText(source: SourceRow, table: Table): Promise<string> {
  const names = new Set<string>();
  let read = 0;
  const query = { ...ranges.revisions(source), newestFirst: true, newer: "kept" } as const;
  for await (const row of allItems((start) => table.query({ ...query, ...start }))) {
    if (++read > mostRead || names.size === mostNamed) break;
    if (!isNewer(row) && isMadeFrom(source.spec, row.artifact)) names.add(row.artifact.revision);
  }
  return names.size === 0 ? "no other revision is stored" : `stored are ${[...names].join(", ")}`;
}

/** Tags may look like this, too. */
const cutCommit = /^[0-9a-f]{7,39}$/;

/** The cause, in which the remedy of an upstream is about the revision and not about the reference of the Source. */
function causeOf(error: unknown): string {
  return errorMessage(error)
    .replace(/\b(?:correct|widen|name one in) spec\.(?:git|helm|oci)\.ref\b(?:\.\w+)?/, "correct revision")
    .replace(/^spec\.external\.version\b/, "revision");
}
