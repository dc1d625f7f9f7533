/** The values of a chart one by one, and the document that sets each: pure. */
import { fieldPath } from "#shared/base/field-path.ts";
import { isJsonObject } from "#shared/base/json.ts";

export interface ValueLeaf {
  readonly path: readonly string[];
  /** Any value except a map with members. */
  readonly value: unknown;
}

function valueLeaves(value: unknown, path: readonly string[] = []): readonly ValueLeaf[] {
  if (!isJsonObject(value) || Object.keys(value).length === 0) return path.length === 0 ? [] : [{ path, value }];
  return Object.entries(value).flatMap(([name, member]) => valueLeaves(member, [...path, name]));
}

/**
 * The values of each document that no later one replaces, by Helm's rules: maps are merged, and any other value
 * replaces the earlier one.
 */
export function lastingLeaves(documents: readonly unknown[]): readonly (readonly ValueLeaf[])[] {
  return documents.map((document, index) => {
    const later = documents.slice(index + 1);
    return valueLeaves(document).filter(({ path }) => !later.some((other) => isSaidIn(other, path)));
  });
}

function isSaidIn(document: unknown, path: readonly string[]): boolean {
  let at: unknown = document;
  for (const name of path) {
    if (!isJsonObject(at)) return true;
    if (!Object.hasOwn(at, name)) return false;
    at = at[name];
  }
  return true;
}

export function leafField({ path }: ValueLeaf): string {
  return path.reduce(fieldPath, "render.helm.values");
}
