/**
 * The last `{`, `[` or quote that a text opens and does not close, and its line. It explains why a parser reached the
 * end too early.
 */
export function unclosedIn(text: string): { readonly opener: string; readonly line: number } | undefined {
  const open: { readonly opener: string; readonly line: number }[] = [];
  let line = 1;
  let quote = "";
  let before = "\n";
  for (const character of text) {
    if (character === "\n") line++;
    if (quote === "#") {
      if (character === "\n") quote = "";
    } else if (quote !== "") {
      if (character === quote && !(quote === '"' && before === "\\")) {
        quote = "";
        open.pop();
      }
    } else if (character === "#" && /\s/.test(before)) quote = "#";
    else if ((character === '"' || character === "'") && /[\s[{,:]/.test(before)) {
      quote = character;
      open.push({ opener: character, line });
    } else if (character === "{" || character === "[") open.push({ opener: character, line });
    else if ((character === "}" || character === "]") && open.length > 0) open.pop();
    before = character;
  }
  return open.at(-1);
}
