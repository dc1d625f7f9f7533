/** A decoded path that names a resource. */
export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
}

/** Reads `/api/v1/...` and `/apis/GROUP/VERSION/...`; undefined for all other paths. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  // The path is decoded before it is split, as in Go: an encoded slash separates. The deprecated `/api/v1/watch/...`
  // reads as the path that it watches.
  const parts = decodePath(path)
    .replace(/^\/|\/$/g, "")
    .replace(deprecatedWatch, "$1")
    .split("/");
  const core = parts[0] === "api";
  if (!core && parts[0] !== "apis") return undefined;
  const group = core ? "" : (parts[1] ?? "");
  const version = parts[core ? 1 : 2] ?? "";
  const rest = parts.slice(core ? 2 : 3);
  const [first] = rest;
  if (first === undefined) return undefined;
  const nested = first === "namespaces" && rest.length > 2 && !(core && ["status", "finalize"].includes(rest[2] ?? ""));
  const [plural = "", name = "", ...subresource] = nested ? rest.slice(2) : rest;
  return { group, version, namespace: nested ? rest[1] : undefined, plural, name, subresource: subresource.join("/") };
}

const deprecatedWatch = /^(api\/[^/]+\/|apis\/[^/]+\/[^/]+\/)watch\//;

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // A % that encodes nothing stays. No object has such a name.
    return path;
  }
}

/** Whether a GET of a collection asks to watch it. */
export function isWatch({ path, query }: { readonly path: string; readonly query: URLSearchParams }): boolean {
  const watch = query.get("watch");
  return watch === "true" || watch === "1" || deprecatedWatch.test(path.slice(1));
}
