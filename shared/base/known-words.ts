/** What stands in the place of a word that may be a secret. */
const hiddenWord = "***";

/** A word of a text, of a template or of an argument: what is between blanks, quotes, brackets and marks. */
const word = /[^\s"'`“”‘’()[\]{}<>,;:=|\\!?*]+/g;
const outerDots = /^\.+|\.+$/g;

/**
 * The text with each word hidden that none of the known texts has: what a program says of its input, without what it quotes.
 * A value cannot be told from a word by looking at it, and functions write it anew (cut, encoded, in capitals), so it is not
 * looked for: what is left is what is known to come from elsewhere.
 */
export function knownWords(text: string, known: Iterable<string>): string {
  const unknown = new Set([...text.matchAll(word)].map(([found]) => bare(found)));
  for (const source of known) {
    if (unknown.size === 0) break;
    for (const [found] of unescaped(source).matchAll(word)) {
      const plain = bare(found);
      unknown.delete(plain);
      // A field is known by each of its members: what is said of `.Values.a.b` is said of `b`.
      if (plain.includes(".")) for (const part of plain.split(".")) unknown.delete(part);
    }
  }
  unknown.delete("");
  const shown = text.replaceAll(word, (found) =>
    unknown.has(bare(found)) ? found.replace(bare(found), hiddenWord) : found,
  );
  return shown.replaceAll(/\*\*\*(?:\s+\*\*\*)+/g, hiddenWord);
}

function bare(found: string): string {
  return found.replaceAll(outerDots, "");
}

/** As a template writes a text, and as it is then. */
function unescaped(source: string): string {
  return source.replaceAll(/\\[nrt]/g, " ");
}
