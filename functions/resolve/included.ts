/** `spec.include`: files of the artifacts of other Sources become a part of a Source's own artifact. */
import { readArtifact } from "#functions/resolve/read-artifact.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { includedSources, mostIncluded } from "#shared/adapters/included-sources.ts";
import { fitProblem } from "#shared/adapters/render/artifact-archive.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { folderFor, includedIn, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { IncludedArtifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { cycleText, includeCycle } from "#shared/fleet/sources/include-cycle.ts";
import { isMadeFrom } from "#shared/fleet/sources/pinned-revision.ts";
import type { BlobStore, MessageSender, Table } from "#shared/ports.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";

/**
 * The artifacts that the included Sources have now, in the order of the spec.
 * @throws StarlingError `IncludeUnavailable`, `IncludeCycle`.
 */
export async function findIncluded(row: SourceRow, table: Table): Promise<readonly IncludedArtifact[]> {
  const { include = [] } = row.spec;
  if (include.length === 0) return [];
  const { namespace, name } = row;
  const known = await includedSources(table, namespace, includedIn(row.spec));
  const cycle = includeCycle(name, (each) => includedIn(each === name ? row.spec : (known.get(each)?.spec ?? {})));
  if (cycle !== undefined) throw upstreamError("IncludeCycle", cycleText(cycle));
  if (known.size > mostIncluded) {
    const message = `spec.include leads to more than ${mostIncluded} Sources; include fewer of them`;
    throw upstreamError("IncludeUnavailable", message);
  }
  return include.map(({ source, fromPath, toPath }, index) => {
    const other = known.get(source);
    const problem = other === undefined ? missing(row) : (unusable(other) ?? unverifiedBelow(other, known));
    const artifact = other?.status.artifact;
    if (problem !== undefined || artifact === undefined) {
      throw upstreamError("IncludeUnavailable", `spec.include[${index}].source: Source ${source} ${problem}`);
    }
    const { revision, digest } = artifact;
    return { source, fromPath, ...defined({ toPath }), revision, digest };
  });
}

/** Equal while the same files are included; undefined without any. */
export function includedQuestion(included: readonly IncludedArtifact[]): string | undefined {
  return included.length === 0 ? undefined : digestOf(included.map(({ digest }) => digest));
}

function missing({ namespace }: SourceRow): string {
  return `does not exist in namespace ${namespace}; apply it, or take it out of spec.include`;
}

/** Why the artifact of a Source may not be included. A suspended one is included as it is. */
function unusable({ name, spec, status, operations }: SourceRow): string | undefined {
  const { artifact, conditions, lost } = status;
  const next = `starling describe source/${name}`;
  if (artifact === undefined) {
    const ready = conditions.find(({ type }) => type === "Ready");
    const why = ready?.status === "False" ? ` (${ready.reason})` : "";
    if (operations.suspended !== undefined) return `has no artifact and is suspended; starling resume source/${name}`;
    return `has no artifact yet${why}; ${next}`;
  }
  if (artifact.digest === lost) return `has lost its artifact, which is fetched again; ${next}`;
  return unverified({ name, spec, status });
}

/** Why the signatures of a Source do not count: none was verified, or not by the keys that it has now. */
function unverified({ name, spec, status }: Pick<SourceRow, "name" | "spec" | "status">): string | undefined {
  const { artifact, conditions } = status;
  const upstream = upstreamOf(spec);
  if (artifact === undefined || !("verify" in upstream) || upstream.verify === undefined) return undefined;
  const verified = conditions.find(({ type }) => type === "SourceVerified");
  const next = `starling source verify ${name}`;
  if (verified?.status === "False") return `is not verified (${verified.reason}); ${next}`;
  if (artifact.verified === undefined) return `is not verified; ${next}`;
  const isCurrent = artifact.madeFrom === undefined || isMadeFrom(spec, artifact);
  return isCurrent ? undefined : `is not verified by the keys of its present spec yet; ${next}`;
}

/** The files of a Source that is included by an included one are in its artifact, too. */
function unverifiedBelow(other: SourceRow, known: ReadonlyMap<string, SourceRow>): string | undefined {
  const seen = new Set<string>();
  for (let left = includedIn(other.spec); left.length > 0; ) {
    const rows = left.flatMap((name) => known.get(name) ?? []);
    for (const row of rows) {
      const problem = unverified(row);
      if (problem !== undefined) return `includes Source ${row.name}, which ${problem}`;
      seen.add(row.name);
    }
    left = [...new Set(rows.flatMap(({ spec }) => includedIn(spec)))].filter((name) => !seen.has(name));
  }
  return undefined;
}

interface ReadPorts {
  readonly blobs: Pick<BlobStore, "get">;
  readonly sender: MessageSender;
}

/** An included artifact, and its files at their new places. */
interface Placed {
  readonly place: string;
  readonly source: string;
  readonly files: readonly ListedFile[];
}

/**
 * Reads the included files. One artifact is unpacked at a time.
 * @throws StarlingError `PathNotFound`, `UpstreamTooLarge`, or `IncludeUnavailable` for an artifact that is gone, which its Source is told.
 */
export async function readIncluded(
  { namespace }: Pick<SourceRow, "namespace">,
  included: readonly IncludedArtifact[],
  ports: ReadPorts,
): Promise<readonly Placed[]> {
  const placed: Placed[] = [];
  for (const [index, one] of included.entries()) {
    const { source, fromPath, revision, digest } = one;
    const all = await filesOf({ namespace, ...one }, ports);
    const place = folderFor(one);
    const files = all.flatMap((file) => {
      if (!isWithin(file.path, [fromPath])) return [];
      const rest = fromPath === "." ? `/${file.path}` : file.path.slice(fromPath.length);
      return [{ ...file, path: `${place}${rest}` }];
    });
    if (files.length === 0) {
      const message = `spec.include[${index}].fromPath: ${revision} of Source ${source} (${digest}) has no files in "${fromPath}"; correct it, or add the files there`;
      throw upstreamError("PathNotFound", message);
    }
    placed.push({ place, source, files });
    requireFit(placed.flatMap((each) => each.files));
  }
  return placed;
}

async function filesOf(
  { namespace, source, revision, digest }: IncludedArtifact & Pick<SourceRow, "namespace">,
  { blobs, sender }: ReadPorts,
): Promise<readonly ListedFile[]> {
  const files = await readArtifact(digest, blobs);
  if (files !== undefined) return files;
  await sender.send([{ to: "resolve", source: { namespace, name: source }, lost: digest, revision }]);
  const message = `the artifact ${digest} of Source ${source} (${revision}) is gone, and is fetched again`;
  throw upstreamError("IncludeUnavailable", message);
}

/**
 * The files of the Source's own upstream, and the included ones.
 * @throws StarlingError `IncludeConflict` when an own file is where included ones are put, `UpstreamTooLarge`.
 */
export function composed(own: readonly ListedFile[], placed: readonly Placed[]): readonly ListedFile[] {
  for (const { place, source } of placed) {
    const file = own.find(({ path }) => isWithin(path, [place]) || isWithin(place, [path]));
    if (file === undefined) continue;
    const message = `the Source's own file ${file.path} is where spec.include puts the files of Source ${source}, ${place}; remove it, or choose another toPath`;
    throw upstreamError("IncludeConflict", message);
  }
  const files = [...own, ...placed.flatMap((each) => each.files)];
  if (placed.length > 0) requireFit(files);
  return files;
}

function requireFit(files: readonly ListedFile[]): void {
  const problem = fitProblem(files);
  if (problem === undefined) return;
  throw upstreamError("UpstreamTooLarge", `with the files of spec.include ${problem}; include less: name a fromPath`);
}
