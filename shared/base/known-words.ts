/** Replaces a word that may be a secret. */
const hiddenWord = "***";

/** A word of a text, a template or an argument: the characters between blanks, quotes, brackets and punctuation. */
const word = /[^\s"'`“”‘’()[\]{}<>,;:=|\\!?*]+/g;
const outerDots = /^\.+|\.+$/g;

export interface KnownWordsOptions {
  /** Characters that join words. The parts between them are words of their own. */
  readonly joints?: string;
}

/**
 * Hides each word of a text that none of the known texts has. Use it to show what a program reports about its input without
 * the values that the program quotes.
 *
 * The function does not look for secret values and mask them, because masking is less safe. Helm reports values after
 * functions cut, rewrote or hashed them, and kustomize reports values of files that it could not parse, in which nobody can
 * find the values beforehand. A missing known word only hides a word too many. `docs/architecture.md` has the measurements.
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
        // Each member of a known field is known, too: a message about `.Values.a.b` can say `b`.
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

/** The text with the escapes of a template replaced. */
function unescaped(source: string): string {
  return source.replaceAll(/\\[nrt]/g, " ");
}
