import { writeFileSync } from "node:fs";
import { artifactText } from "#cli/format/artifacts-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { artifactsPath } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { defined } from "#shared/base/defined.ts";
import { isRealDay } from "#shared/base/is-real-day.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ArtifactItem, LinkedArtifact } from "#shared/fleet/api/artifact-item.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";

export interface ResolveOptions {
  readonly revision?: string;
  readonly asOf?: string;
  readonly download?: string;
}

/** Shows one artifact of a Source, and writes it into a file. */
export async function resolveArtifact(session: Session, source: string, options: ResolveOptions): Promise<ExitReason> {
  const path = artifactsPath(source, session.namespace());
  const found = await artifactOf(session, path, referenceIn(options, session.io.now()));
  if (found === undefined) {
    const next = `starling describe source/${source}${session.where()}`;
    throw new CliFailure(`Source ${source} has no artifact yet`, { exit: "no", next });
  }
  const { output } = session.options;
  if (options.download !== undefined)
    await download(session, `${path}/${percentEncode(found.digest)}`, options.download);
  session.io.out(isData(output) ? serialise(found, output) : artifactText(found));
  return "done";
}

/** @returns undefined for the present artifact. */
function referenceIn({ revision, asOf }: ResolveOptions, now: Date): string | undefined {
  if (asOf === undefined) return revision;
  if (revision !== undefined) throw usageFailure("--revision and --as-of are given both; one is enough", "--as-of 2h");
  const seconds = durationSeconds(asOf);
  if (seconds !== undefined) return later(now, -seconds);
  const time = Date.parse(asOf);
  if (/^\d{4}-\d\d-\d\dT/.test(asOf) && !Number.isNaN(time) && isRealDay(asOf)) return new Date(time).toISOString();
  throw usageFailure(
    `--as-of is "${asOf}"; expected a time or a duration`,
    "--as-of 2026-11-22T18:00:00Z, or --as-of 2h",
  );
}

async function artifactOf(
  { api }: Session,
  path: string,
  reference: string | undefined,
): Promise<ArtifactItem | undefined> {
  const query = { limit: "1", ...defined({ reference }) };
  const { items } = await api.call<ApiList<ArtifactItem>>({ method: "GET", path, query });
  return items[0];
}

/** Writes nothing that has other files than the digest says. */
async function download({ api, note }: Session, path: string, file: string): Promise<void> {
  const { url, digest } = await api.call<LinkedArtifact>({ method: "GET", path });
  const bytes = await new HttpTransfer().download(url);
  const { length } = await unpackArtifact(bytes, digest);
  writeFileSync(file, bytes);
  note(`wrote ${file}: ${length} ${length === 1 ? "file" : "files"}, as the digest says`);
}
