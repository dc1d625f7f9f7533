import { objectName } from "#functions/api/query-values.ts";

export type PathParams = Readonly<Record<string, string>>;

const paramRules: Readonly<Record<string, RegExp>> = {
  plural: /^(sources|syncgroups|syncs|rollouts)$/,
  subjects: /^(syncgroups|syncs)$/,
  verb: /^(suspend|resume|reconcile|restart)$/,
  number: /^([1-9]\d{0,7}|newest)$/,
  namespace: objectName,
  freeze: /./s,
  name: /^[a-z0-9][-a-z0-9.]{0,127}$/,
};

/** What the parts of the path are that the pattern names with `:`; undefined when it is another path. */
export function matchPath(pattern: string, path: readonly string[]): PathParams | undefined {
  const parts = pattern.split("/").slice(1);
  if (parts.length !== path.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, actual] of path.entries()) {
    const part = parts[index];
    if (part?.startsWith(":") !== true) {
      if (part !== actual) return undefined;
      continue;
    }
    const name = part.slice(1);
    if (paramRules[name]?.test(actual) !== true) return undefined;
    params[name] = actual;
  }
  return params;
}

/** @throws Error where the route has no such part. */
export function part(params: PathParams, name: string): string {
  const value = params[name];
  if (value === undefined) throw new Error(`the route has no :${name}`);
  return value;
}
