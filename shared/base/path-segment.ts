/**
 * Why a text cannot be one segment of a path of the API, by the rule of apimachinery's IsValidPathSegmentName; undefined
 * when it can. Percent-encoding is no cure: `..` has nothing to encode, and servers and proxies decode `%2F`.
 */
export function pathSegmentProblem(text: string): string | undefined {
  if (text === "." || text === "..") return `may not be "${text}"`;
  for (const forbidden of ["/", "%"]) if (text.includes(forbidden)) return `may not contain "${forbidden}"`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(text)) return "may not contain control characters";
  if (!text.isWellFormed()) return "may not contain half a character";
  return undefined;
}

/** Whether a URL has this path as it is written: each of its parts is one, and none leads elsewhere or is the end of it. */
export function isPlainPath(path: string): boolean {
  if (!path.startsWith("/") || /[?#\\\s]/.test(path)) return false;
  return path
    .slice(1)
    .split("/")
    .every((segment) => segment !== "" && !/^(?:\.|%2e){1,2}$/i.test(segment));
}
