/** The remedy for a field that the schema does not have. */
import { excerpt } from "#shared/base/excerpt.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";

/** Words of other tools, and of people, for fields. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  exclude: ["deny"],
  from: ["start"],
  name: ["branch"],
  repository: ["source"],
  resources: ["sources"],
  schedule: ["cron"],
  secretRef: ["credentials", "secrets"],
  semverFilter: ["tagFilter"],
  tag: ["semver"],
  targetRevision: ["ref"],
  timeout: ["expires"],
  to: ["end"],
  type: ["provider"],
  version: ["ref"],
  within: ["per"],
};

const gatesAfter: ReadonlySet<string> = new Set(["bake", "alarm", "check"]);

/** @param field - the whole path of the key. @param known - the fields that stand there instead. */
export function unknownFieldText(key: string, field: string, known: readonly string[]): string {
  return `is not a field Starling knows${meantBy(key, known)}; ${remedyOf(key, field, known)}`;
}

function meantBy(key: string, known: readonly string[]): string {
  const words = Object.hasOwn(otherWords, key) ? otherWords[key] : undefined;
  const word = words?.find((one) => known.includes(one));
  return word === undefined ? didYouMean(key, known) : ` (did you mean ${word}?)`;
}

/** Fields in the wrong place move; all others are removed. */
function remedyOf(key: string, field: string, known: readonly string[]): string {
  if (known.includes("matchLabels")) return `write matchLabels: { ${excerpt(key)}: ... } for a label`;
  if (gatesAfter.has(key) && /\.before\[\d+\]\.\w+$/.test(field)) return "write it below after of the stage";
  if (key === "approval" && /\.after\[\d+\]\.\w+$/.test(field)) return "write it below before of the stage";
  return "remove it";
}
