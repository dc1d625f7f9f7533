/**
 * Characters that a terminal interprets instead of showing: control characters except tab and line feed, and characters
 * that change the text direction or begin a new line.
 */
const obeyed = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** The text in one line. */
export function plainLine(text: string): string {
  return plainText(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** The text with such characters written as `\u001b`. */
export function plainText(text: string): string {
  return text.replaceAll(obeyed, (character) => {
    if (character === "\n" || character === "\t") return character;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
