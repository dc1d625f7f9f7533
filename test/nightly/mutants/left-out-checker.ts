/**
 * A checker for Stryker, which loads it by its path. It leaves out mutants of texts for people, because tests check only
 * the code and the words that matter in them, and mutants that are not in the sample.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { mutantText, type RunMutant, textKey } from "#test/nightly/mutants/mutant-text.ts";

export const everySetting = "STARLING_MUTANTS_EVERY";
export const testsSetting = "STARLING_MUTANTS_TESTS";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** Two words, or a word and a value, with a space between. */
const severalWords = /[\p{L}\d,;:.)}] [\p{L}\d($"`]|[\p{L}\d,;:.)}] \$\{|^["`][ ,;:.]+[\p{L}$]/u;
/** The code before a text of an error or a log entry. In adapters, other texts with several words belong to protocols. */
const spoken = /(?:Error\(|\b(?:message|remedy)(?::| =)|log\.\w+\()\s*$/;
const withProtocols = /\/shared\/adapters\//;

function textForPeople(mutant: RunMutant): boolean {
  if (mutant.mutatorName !== "StringLiteral") return false;
  const lines = readFileSync(mutant.fileName, "utf8").split("\n");
  const { start, end } = mutant.location;
  const touched = lines.slice(start.line, end.line + 1);
  touched[touched.length - 1] = touched.at(-1)?.slice(0, end.column) ?? "";
  const text = touched.join("\n").slice(start.column);
  if (!severalWords.test(text)) return false;
  const before = `${lines[start.line - 1] ?? ""}\n${lines[start.line]?.slice(0, start.column)}`;
  return !withProtocols.test(mutant.fileName) || spoken.test(before);
}

function reasonToLeaveOut(mutant: RunMutant): string | undefined {
  if (textForPeople(mutant)) return "text";
  return inSample(mutant) ? undefined : "sample";
}

/** Samples by the mutant's text and not by its number, because an added line must not change the sample of later ones. */
function inSample(mutant: RunMutant): boolean {
  const hash = createHash("sha256").update(textKey(mutantText(mutant, root)));
  return hash.digest().readUInt32BE() % Number(process.env[everySetting] ?? 1) === 0;
}

async function check(mutants: readonly RunMutant[]) {
  const results = mutants.map((mutant) => {
    const reason = reasonToLeaveOut(mutant);
    return [mutant.id, reason === undefined ? { status: "passed" } : { status: "compileError", reason }] as const;
  });
  return Object.fromEntries(results);
}

export const strykerPlugins = [{ kind: "Checker", name: "left-out", value: { init: async () => undefined, check } }];
