import { objectName } from "#functions/api/query-values.ts";
import { pathChoices } from "#shared/fleet/api/api-routes.ts";

export type PathParams = Readonly<Record<string, string>>;

/** What the name of an object looks like; that of a Sync of a group has a dot in it. */
export const pathName = /^[a-z0-9][-a-z0-9.]{0,127}$/;

const paramRules: Readonly<Record<string, RegExp>> = {
  ...Object.fromEntries(
    Object.entries(pathChoices).map(([name, words]) => [name, new RegExp(`^(${words.join("|")})$`)]),
  ),
  number: /^([1-9]\d{0,7}|newest)$/,
  namespace: objectName,
  freeze: /./s,
  name: pathName,
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
