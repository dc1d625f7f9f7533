/** Parses JSON of somebody else, which a schema checks afterwards. @returns undefined when the text is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
