/**
 * Why a text cannot be a segment of an API path, by the rule of apimachinery's IsValidPathSegmentName; undefined when
 * it can. Percent-encoding does not help: `..` has nothing to encode, and servers and proxies decode `%2F`.
 */
export function pathSegmentProblem(text: string): string | undefined {
  if (text === "." || text === "..") return `must not be "${text}"`;
  for (const forbidden of ["/", "%"]) if (text.includes(forbidden)) return `must not contain "${forbidden}"`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(text)) return "must not contain control characters";
  if (!text.isWellFormed()) return "must not contain half of a surrogate pair";
  return undefined;
}

/** Whether a URL has this path exactly as it is written: no segment leads elsewhere, and none ends the path. */
export function isPlainPath(path: string): boolean {
  if (!path.startsWith("/") || /[?#\\\s]/.test(path)) return false;
  return path
    .slice(1)
    .split("/")
    .every((segment) => segment !== "" && !/^(?:\.|%2e){1,2}$/i.test(segment));
}
