/**
 * The words that Starling no longer uses, and the words that it uses instead. The glossary in the documentation explains the new ones.
 *
 * `in` says where a word is refused: in identifiers (names of files included), in texts (comments, strings and pages), or
 * in both. A word is refused in each of its forms that the table names, and inside of longer identifiers.
 */
export const oldWords = [];

/** Phrases that are refused in texts. */
export const oldPhrases = [
  { old: /\b(gives?|gave|given|giving) back\b/i, use: "restore, release" },
  { old: /\b(lets?|letting) go\b/i, use: "release" },
  { old: /\b(takes?|took|taken|taking) up\b/i, use: "start" },
  { old: /\b[Aa]s [\w' -]{1,40} (has|have|had) it\b/, use: "name who says or holds it" },
  { old: /\b(goes|go|went) by\b/i, use: "use, follow" },
];

/** Identifiers that are refused as a whole. */
export const oldIdentifiers = [];

/** Where an old word is right. `words` are the forms that are left alone in files whose path matches. */
export const exceptions = [
  { path: /^(scripts\/language\/|test\/unit\/scripts\/lint-language)/, reason: "They are about the old words." },
  { path: /^docs\/words\.md$/, reason: "The glossary names what others call a thing." },
  { path: /^(LICENSE|package-lock\.json|test\/fixtures\/|local\/apiserver\/apply\/builtin)/, reason: "Not our text." },
];

/** File names that several folders have: they say what part of the folder a file is, not what it exports. */
export const conventionalFiles = {
  "handler.ts": "Every function's entry point, named by the infrastructure.",
  "env.ts": "Every function's environment, read by the infrastructure.",
  "wire.ts": "Every function's adapters.",
};

/** Names that several files export. */
export const conventionalExports = {
  handler: "The name that Lambda calls in every handler.ts.",
};
