/** The artifacts of a Source, for people. */
import { fieldsText } from "#cli/format/describe-text.ts";
import { digestText } from "#cli/format/get-table.ts";
import type { TextTable } from "#cli/format/table.ts";
import type { ArtifactItem } from "#shared/fleet/api/artifact-item.ts";
import { folderFor, type Inclusion } from "#shared/fleet/kinds/source.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const kib = 1024;

export function artifactsTable(items: readonly ArtifactItem[], now: Date, output: string | undefined): TextTable {
  const wide = output === "wide";
  return {
    columns: ["REVISION", "SINCE", "AGE", "SIZE", "VERIFIED", "DIGEST", ...(wide ? ["STORED", "KEY"] : []), "ORIGIN"],
    rows: items.map((item) => [
      wide ? item.revision : revisionText(item.revision),
      item.at === undefined ? "-" : formatTime(item.at, now),
      item.at === undefined ? "-" : formatAge(item.at, now),
      sizeText(item.sizeBytes),
      item.verified === undefined ? "-" : "yes",
      wide ? item.digest : digestText(item.digest),
      ...(wide ? [formatTime(item.storedAt, now), item.key] : []),
      item.origin ?? "-",
    ]),
  };
}

export function artifactText(item: ArtifactItem): string {
  return fieldsText([
    ["Revision", item.revision],
    ["Digest", item.digest],
    ["Since", item.at],
    ["Present", item.present ? "yes" : "no"],
    ["Size", `${sizeText(item.sizeBytes)}, ${item.files} ${item.files === 1 ? "file" : "files"}`],
    ["Stored", item.storedAt],
    ["Key", item.key],
    ["Origin", item.origin],
    ["Verified", item.verified === undefined ? undefined : "yes"],
    ...(item.included ?? []).map(
      (one) => ["Includes", `${inclusionText(one)}   ${one.revision}   ${one.digest}`] as const,
    ),
    ["Content", item.title],
    ["Author", item.author === "" ? undefined : item.author],
  ]);
}

/** `charts/deploy/web in vendor/web` */
export function inclusionText(one: Inclusion): string {
  const from = one.fromPath === "." ? "" : `/${one.fromPath}`;
  return `${one.source}${from} in ${folderFor(one)}`;
}

function sizeText(bytes: number): string {
  if (bytes < kib) return `${bytes} B`;
  return bytes < kib * kib ? `${Math.round(bytes / kib)} KiB` : `${(bytes / kib / kib).toFixed(1)} MiB`;
}
