import { errorMessage } from "#shared/base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { expand, SubstitutionError, type Variables } from "#shared/source/substitution/expand.ts";

/**
 * A label or annotation of an object with the value `disabled`. It is Flux's mark, so that manifests written for Flux
 * work.
 */
const substituteMark = "kustomize.toolkit.fluxcd.io/substitute";

/** @returns never: it throws an error about the field. */
export type Refuse = (field: string, reason: string) => never;

export interface Substitution {
  readonly variables: Variables;
  /** Characters that all texts of a rendering may still expand to. The number shrinks with each text. */
  readonly room: { left: number };
}

/**
 * The object with `${NAME}` expanded in its strings only. A string stays a string: no value becomes a number, a map or
 * another key.
 */
export function substituteObject(object: JsonObject, { variables, room }: Substitution, refuse: Refuse): JsonObject {
  if (isMarked(object)) return object;

  function inText(text: string, field: string): string {
    try {
      const expanded = expand(text, variables);
      room.left -= expanded.length;
      if (room.left >= 0) return expanded;
      throw new SubstitutionError(
        "makes the rendering's expanded texts too long together; shorten the values, or substitute less",
      );
    } catch (error) {
      if (error instanceof SubstitutionError)
        refuse(
          field,
          `${errorMessage(error)}; annotate the object with ${substituteMark}: disabled to leave it as it is`,
        );
      throw error;
    }
  }

  function inValue(value: Json, field: string): Json {
    if (typeof value === "string") return value.includes("$") ? inText(value, field) : value;
    if (Array.isArray(value)) return value.map((item: Json, index) => inValue(item, `${field}[${index}]`));
    return isJsonObject(value) ? inMap(value, field) : value;
  }

  function inMap(map: JsonObject, field: string): JsonObject {
    const members = Object.entries(map).map(([key, value]) => {
      const at = /^[A-Za-z_][\w-]*$/.test(key)
        ? field === ""
          ? key
          : `${field}.${key}`
        : `${field}[${JSON.stringify(key)}]`;
      if (/\$\{/.test(key))
        refuse(
          at,
          `is a key that contains \${, and keys are not substituted; annotate the object with ${substituteMark}: disabled to leave it as it is`,
        );
      return [key, value === undefined ? undefined : inValue(value, at)] as const;
    });
    return Object.fromEntries(members);
  }

  return inMap(object, "");
}

/** The mark counts only in this spelling, as in Flux. */
export function isMarked({ metadata }: JsonObject): boolean {
  if (!isJsonObject(metadata)) return false;
  return [metadata.labels, metadata.annotations].some((map) => isJsonObject(map) && map[substituteMark] === "disabled");
}
