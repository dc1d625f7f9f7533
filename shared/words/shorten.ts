/** The text with at most this many characters. A longer text ends with `…`. Line ends become spaces. */
export function shorten(text: string, most: number): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const characters = [...line];
  return characters.length <= most ? line : `${characters.slice(0, most - 1).join("")}…`;
}
