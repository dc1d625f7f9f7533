import { plainLine } from "#shared/base/plain-text.ts";
import type { SourceVerdict } from "#shared/fleet/api/source-verdict.ts";
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
  return `${lines.map(plainLine).join("\n")}\n`;
}

function whoText({ by }: SourceVerdict): string {
  return by === "starling" ? "Starling" : "this command, with the present keys of the Source";
}
