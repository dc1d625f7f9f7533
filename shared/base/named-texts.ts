/** @param text - `name=text,name=text`, as the stacks write it into environments; absent for none. */
export function namedTexts(text: string | undefined): ReadonlyMap<string, string> {
  return new Map(text?.split(",").map((pair) => pair.split("=") as [string, string]));
}
