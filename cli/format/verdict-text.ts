import { inclusionText } from "#cli/format/artifacts-text.ts";
import { digestText } from "#cli/format/get-table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { IncludedVerdict, SourceVerdict } from "#shared/fleet/api/source-verdict.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { revisionText } from "#shared/words/revision-text.ts";

/** The verdict about a revision of a Source, for people. */
export function verdictText(verdict: SourceVerdict, now: Date): string {
  const { source, namespace, revision } = verdict;
  const about = [`${namespace}/${source}`, ...(revision === undefined ? [] : [revisionText(revision)])];
  const lines = verdict.verified
    ? [
        [...about, "verified", `(mode ${verdict.mode})`].join("   "),
        ...verdict.signatures.map(({ object, key, owner = "" }) => `  ${object}   key ${key}   ${owner}`.trimEnd()),
        `by ${whoText(verdict)}, ${formatTime(verdict.at, now)}, ${formatAge(verdict.at, now)} ago`,
      ]
    : [
        [...about, "not verified", `(${verdict.reason})`].join("   "),
        `  ${verdict.message}`,
        `by ${whoText(verdict)}`,
        ...(verdict.inUse === undefined ? [] : [`in use: ${revisionText(verdict.inUse)}`]),
      ];
  if (verdict.included !== undefined) lines.push("includes:", ...verdict.included.map(includedLine));
  return `${lines.map(plainLine).join("\n")}\n`;
}

function includedLine(one: IncludedVerdict): string {
  const about = [inclusionText(one), revisionText(one.revision), digestText(one.digest)];
  if (!one.verified) return `  ${[...about, "not verified", `(${one.reason})`].join("   ")}`;
  const keys = one.signatures.map(({ key, owner = "" }) => `key ${key} ${owner}`.trimEnd());
  return `  ${[...about, "verified", `(mode ${one.mode})`, ...keys].join("   ")}`;
}

function whoText({ by }: SourceVerdict): string {
  return by === "starling" ? "Starling" : "this command, with the present keys of the Source";
}
