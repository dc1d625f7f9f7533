/** Finds sentences without a plain subject, such as `What failed is tried again` and `Nor is it deleted`. */
import { wordCount } from "./texts.mjs";

/** Shorter ones are labels. */
const leastWords = 5;

const pronouns = "who|what|whoever|whatever|whom|whose|where|wherever|which|whichever|of|nor";
const prepositions = "in|on|by|with|from|for|to|at|after|before|until|under|among|without|than";
const auxiliaries = "is|are|was|were|has|had|does|did|should|may|might|could|would|will|cannot";
const headless = [
  new RegExp(`^(${pronouns})\\b(?! course\\b)`, "i"),
  // The same clause behind a preposition, such as `In what was over`.
  new RegExp(`^(${prepositions}) (what|whom|whoever|whatever)\\b`, "i"),
  // An inversion, such as `Only then is it written`.
  new RegExp(`^(not only|only then|only thus|neither|never|so|nowhere|no sooner) (${auxiliaries})\\b`, "i"),
];
/** A dropped subject (`Is not deleted`), or a condition without its `if` (`Were it to fail`). */
const dropped = new RegExp(`^(${auxiliaries})\\b`, "i");

/** The sentences of a text, and those of them that begin with a headless clause or without their subject. */
export function readSentences({ kind, text }) {
  const sentences = text.split(/(?<=[.:;!?]["')`*_]*)\s+/).filter((each) => wordCount(each) >= leastWords);
  const begun = sentences
    .map((each) => ({ each, start: startOf(each, kind, text) }))
    .filter(({ start }) => start !== "");
  return {
    count: sentences.length,
    headless: begun.filter(({ start }) => headless.some((each) => each.test(start))).map(({ each }) => each),
    // A message may say "must be a number", and the first sentence of a docstring "Has the artifact rendered".
    subjectless: begun
      .filter(({ start }) => kind !== "message" && dropped.test(start))
      .filter(({ each }) => kind !== "comment" || !text.startsWith(each))
      .map(({ each }) => each),
  };
}

/** A sentence without the marks before it; nothing for a question, or where an earlier sentence goes on. */
function startOf(sentence, kind, text) {
  const plain = sentence.replace(/^[("'`*_[\s-]+/, "");
  if (/\?["')`*_]*$/.test(plain)) return "";
  // Titles and messages begin in lower case; elsewhere lower case goes on with a sentence that has begun.
  const mayBeLower = (kind === "title" || kind === "message") && text.startsWith(sentence);
  return /^[a-z]/.test(plain) && !mayBeLower ? "" : plain;
}
