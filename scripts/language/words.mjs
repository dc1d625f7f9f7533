/** Finds the words of table.mjs in identifiers and texts. */
import { exceptions, oldIdentifiers, oldPhrases, oldWords } from "./table.mjs";

const replacements = { identifier: new Map(), text: new Map() };
for (const { old, use, in: place } of oldWords) {
  for (const word of old) {
    if (place !== "texts") replacements.identifier.set(word, use);
    if (place !== "identifiers") replacements.text.set(word, use);
  }
}

/** Each use of an old word: `{ place, word, use, line }`; `place` is identifier or text. */
export function findOldWords(path, { identifiers, texts }) {
  const allowed = exceptions.filter((each) => each.path.test(path));
  if (allowed.some(({ words }) => words === undefined)) return [];
  const spared = new Set(allowed.flatMap(({ words }) => words));
  const fileName = path.slice(path.lastIndexOf("/") + 1).replace(/\..*$/, "");
  const names = [{ name: fileName, line: 0 }, ...identifiers];
  return [
    ...names.flatMap(({ name, line }) => inIdentifier(name).map((each) => ({ ...each, place: "identifier", line }))),
    ...texts.flatMap(({ text, line }) => inText(text).map((each) => ({ ...each, place: "text", line }))),
  ].filter(({ word }) => !spared.has(word));
}

const known = new Map();

function inIdentifier(name) {
  const before = known.get(name);
  if (before !== undefined) return before;
  const whole = oldIdentifiers.find(({ old }) => old.test(name));
  const found = [
    ...words(name)
      .filter((word) => replacements.identifier.has(word))
      .map((word) => ({ word, use: replacements.identifier.get(word) })),
    ...(whole === undefined ? [] : [{ word: name, use: whole.use }]),
  ];
  known.set(name, found);
  return found;
}

function inText(text) {
  const found = words(text)
    .filter((word) => replacements.text.has(word))
    .map((word) => ({ word, use: replacements.text.get(word) }));
  for (const { old, use } of oldPhrases) {
    const match = old.exec(text);
    if (match !== null) found.push({ word: match[0].toLowerCase(), use });
  }
  return found;
}

/** The words of a text or an identifier in small letters: `readStageRun`, `STAGE_RUN` and `stage-run` have two or three. */
function words(text) {
  return (text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []).map((each) => each.toLowerCase());
}
