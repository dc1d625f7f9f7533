/** Finds an artifact that a Source has, or had while its revisions are kept, by what people and programs know of it. */
import { collect, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { isRealDay } from "#shared/base/is-real-day.ts";
import { type ArtifactItem, artifactItem } from "#shared/fleet/api/artifact-item.ts";
import { keptSeconds } from "#shared/fleet/rows/expiry.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RevisionRow } from "#shared/fleet/rows/revision-row.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { uploadRevision } from "#shared/fleet/sources/uploads.ts";
import type { Table } from "#shared/ports.ts";
import { commitIn } from "#shared/source/git-reference.ts";

interface Ports {
  readonly table: Table;
  readonly clock: Clock;
}

interface SourceName {
  readonly namespace: string;
  readonly name: string;
}

/** Revisions that one search reads at most, the newest first. */
const mostRead = 5000;

/** The artifacts that a Source had, the newest first; only the one that `reference` names, when given. */
export async function listArtifacts(
  ports: Ports,
  source: SourceName,
  { page, reference }: { readonly page: PageRequest; readonly reference?: string },
): Promise<ListPage<ArtifactItem>> {
  if (reference !== undefined) return { items: [await findArtifact(ports, source, reference)] };
  const row = await sourceOf(ports.table, source);
  const found = await collect(page, {
    read: (part) => ports.table.query({ ...ranges.revisions(source), newestFirst: true, newer: "kept", ...part }),
    keep: (one) => (isNewer(one) ? undefined : itemOf(one, row)),
  });
  const isFirst = page.after === undefined;
  // A Source that has one artifact for longer than revisions are kept has no row of it.
  return isFirst && found.items.length === 0 && found.next === undefined ? { items: presentOf(row) } : found;
}

/**
 * @param reference - the digest of an artifact, a whole revision, a commit or the beginning of it, a branch, tag or version
 *   as a revision names it, or a time.
 * @throws StarlingError `NotFound` that says since when the revisions are known; `BadRequest` for a time in the future, and
 *   for the beginning of several commits.
 */
export async function findArtifact(ports: Ports, source: SourceName, reference: string): Promise<ArtifactItem> {
  const row = await sourceOf(ports.table, source);
  return timeIn(reference) === undefined
    ? artifactNamed(ports.table, row, reference)
    : artifactAsOf(ports, row, reference);
}

async function sourceOf(table: Table, { namespace, name }: SourceName): Promise<SourceRow> {
  const row = await table.get(keys.object(namespace, "Source", name));
  if (row === undefined) throw refusal("NotFound", `Source ${namespace}/${name} does not exist`);
  return row;
}

async function* revisionsOf(table: Table, row: SourceRow): AsyncGenerator<RevisionRow> {
  const query = { ...ranges.revisions(row), newestFirst: true, newer: "kept" } as const;
  let read = 0;
  for await (const one of allItems((start) => table.query({ ...query, ...start }))) {
    if (++read > mostRead) return;
    if (!isNewer(one)) yield one;
  }
}

async function artifactNamed(table: Table, row: SourceRow, reference: string): Promise<ArtifactItem> {
  const matches = matcherOf(reference);
  const found: ArtifactItem[] = [];
  let oldest: string | undefined;
  for await (const one of revisionsOf(table, row)) {
    oldest = one.at;
    if (matches(one.artifact)) found.push(itemOf(one, row));
  }
  const { artifact } = row.status;
  if (found.length === 0 && artifact !== undefined && matches(artifact)) found.push(...presentOf(row));
  if (found.length === 0) found.push(...(await pinnedAs(table, row, reference)));
  const [newest] = found;
  if (newest === undefined) {
    const since = oldest === undefined ? "" : `; its revisions are known since ${oldest}, and older ones are forgotten`;
    const message = pushedText(row, reference) ?? `${nameOf(row)} had no revision ${excerpt(reference)}`;
    throw refusal("NotFound", `${message}${since}`, { oldest });
  }
  const commits = new Set(found.map(({ revision }) => commitIn(revision)));
  if (isDigits(reference) && commits.size > 1) {
    throw refusal("BadRequest", `${reference} is the beginning of ${[...commits].join(" and of ")}; write more of it`);
  }
  return newest;
}

/** A version that was pushed, and of which no artifact is stored. */
function pushedText(row: SourceRow, reference: string): string | undefined {
  const { uploads = [] } = row.operations;
  const upload = uploads.find((each) => each.version === reference || uploadRevision(each) === reference);
  if (upload === undefined) return undefined;
  const what = `version ${upload.version} was pushed to ${nameOf(row)} at ${upload.at}, and no artifact of it is stored`;
  return `${what}; push the same files as another version`;
}

/** The artifact of a revision at which templates stay, which the Source itself may never have had. */
async function pinnedAs(table: Table, row: SourceRow, reference: string): Promise<readonly ArtifactItem[]> {
  const matches = matcherOf(reference);
  const pins = await Array.fromAsync(
    allItems((start) => table.query({ ...ranges.pins(row), newer: "kept", ...start })),
  );
  const named = pins.flatMap((pin) => {
    if (isNewer(pin) || pin.artifact === undefined) return [];
    const isNamed = keys.pin.read(pin).revision === reference || matches(pin.artifact);
    return isNamed ? [artifactItem(pin.artifact, { present: false })] : [];
  });
  return named.slice(0, 1);
}

async function artifactAsOf({ table, clock }: Ports, row: SourceRow, reference: string): Promise<ArtifactItem> {
  const at = timeIn(reference) ?? "";
  const now = clock.now();
  if (at > now.toISOString()) {
    throw refusal("BadRequest", `${reference} is in the future; it is ${now.toISOString()} now`);
  }
  let oldest: string | undefined;
  for await (const one of revisionsOf(table, row)) {
    if (one.at <= at) return itemOf(one, row);
    oldest = one.at;
  }
  const [present] = presentOf(row);
  // No row: whatever it has now, it has for longer than a row is kept.
  const kept = new Date(now.getTime() - keptSeconds * 1000).toISOString();
  if (oldest === undefined && present !== undefined && at >= kept) return present;
  const since = oldest ?? (present === undefined ? undefined : kept);
  const known = since === undefined ? "it has none yet" : `its revisions are known since ${since}`;
  throw refusal("NotFound", `the artifact of ${nameOf(row)} at ${reference} is not known: ${known}`, { oldest: since });
}

function matcherOf(reference: string): (had: { readonly revision: string; readonly digest: string }) => boolean {
  if (isDigits(reference)) {
    return ({ revision }) => commitIn(revision).startsWith(reference) || revision.split("@").includes(reference);
  }
  return ({ revision, digest }) =>
    digest === reference || revision === reference || revision.split("@").includes(reference);
}

function isDigits(reference: string): boolean {
  return /^[0-9a-f]{7,64}$/.test(reference);
}

/** The time in UTC; undefined when the reference is no time. @throws StarlingError `BadRequest` for a day that no month has. */
function timeIn(reference: string): string | undefined {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;
  const at = form.test(reference) ? Date.parse(reference) : Number.NaN;
  if (Number.isNaN(at)) return undefined;
  if (isRealDay(reference)) return new Date(at).toISOString();
  throw refusal("BadRequest", `${reference} is no time: no month has such a day`);
}

function itemOf({ artifact, at }: RevisionRow, { status }: SourceRow): ArtifactItem {
  const present = artifact.revision === status.artifact?.revision && artifact.digest === status.artifact.digest;
  return artifactItem(artifact, { at, present });
}

function presentOf({ status: { artifact } }: SourceRow): readonly ArtifactItem[] {
  return artifact === undefined ? [] : [artifactItem(artifact, { present: true })];
}

function nameOf({ namespace, name }: SourceRow): string {
  return `Source ${namespace}/${name}`;
}
