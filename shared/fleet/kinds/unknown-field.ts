/** The remedy for a field that the schema does not have. */
import { excerpt } from "#shared/base/excerpt.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";

/** Words of other tools, and of people, for fields. */
const otherWords: Readonly<Record<string, string>> = {
  exclude: "deny",
  from: "start",
  schedule: "cron",
  timeout: "expires",
  to: "end",
  within: "per",
};

const gatesAfter: ReadonlySet<string> = new Set(["bake", "alarm", "check"]);

/** @param field - the whole path of the key. @param known - the fields that stand there instead. */
export function unknownFieldText(key: string, field: string, known: readonly string[]): string {
  return `is not a field Starling knows${meantBy(key, known)}; ${remedyOf(key, field, known)}`;
}

function meantBy(key: string, known: readonly string[]): string {
  const word = Object.hasOwn(otherWords, key) ? otherWords[key] : undefined;
  return word !== undefined && known.includes(word) ? ` (did you mean ${word}?)` : didYouMean(key, known);
}

/** Fields in the wrong place move; all others are removed. */
function remedyOf(key: string, field: string, known: readonly string[]): string {
  if (known.includes("matchLabels")) return `write matchLabels: { ${excerpt(key)}: ... } for a label`;
  if (gatesAfter.has(key) && /\.before\[\d+\]\.\w+$/.test(field)) return "write it below after of the stage";
  if (key === "approval" && /\.after\[\d+\]\.\w+$/.test(field)) return "write it below before of the stage";
  return "remove it";
}
