/** What stands in the place of a word that may be a secret. */
const hiddenWord = "***";

/** A word of a text, of a template or of an argument: what is between blanks, quotes, brackets and marks. */
const word = /[^\s"'`“”‘’()[\]{}<>,;:=|\\!?*]+/g;
const outerDots = /^\.+|\.+$/g;

export interface KnownWordsOptions {
  /** Characters that words are put together with: what is between them is a word of its own. */
  readonly joints?: string;
}

/**
 * The text with each word hidden that none of the known texts has: what a program says of its input, without what it quotes.
 * A value cannot be told from a word by looking at it, and functions write it anew (cut, encoded, in capitals), so it is not
 * looked for: what is left is what is known to come from elsewhere.
 */
export function knownWords(text: string, known: Iterable<string>, { joints = "" }: KnownWordsOptions = {}): string {
  const part = joints === "" ? /[\s\S]+/g : new RegExp(`[^${joints}]+`, "g");
  const partsOf = (found: string) => bare(found).match(part) ?? [];
  const unknown = new Set((text.match(word) ?? []).flatMap(partsOf));
  for (const source of known) {
    if (unknown.size === 0) break;
    for (const [found] of unescaped(source).matchAll(word)) {
      for (const plain of partsOf(found)) {
        unknown.delete(plain);
        // A field is known by each of its members: what is said of `.Values.a.b` is said of `b`.
        if (plain.includes(".")) for (const member of plain.split(".")) unknown.delete(member);
      }
    }
  }
  const hide = (plain: string) => plain.replaceAll(part, (one) => (unknown.has(one) ? hiddenWord : one));
  return text
    .replaceAll(word, (found) => found.replace(bare(found), hide))
    .replaceAll(/\*\*\*(?:\s+\*\*\*)+/g, hiddenWord);
}

function bare(found: string): string {
  return found.replaceAll(outerDots, "");
}

/** As a template writes a text, and as it is then. */
function unescaped(source: string): string {
  return source.replaceAll(/\\[nrt]/g, " ");
}
