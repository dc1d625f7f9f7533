import { errorMessage } from "#shared/base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { expand, SubstitutionError, type Variables } from "#shared/source/substitution/expand.ts";

/** On an object, as a label or annotation with the value `disabled`: as in Flux, so that what is written for it works. */
const substituteMark = "kustomize.toolkit.fluxcd.io/substitute";

/** @returns never: it tells of a field what is wrong with it. */
export type Refuse = (field: string, reason: string) => never;

export interface Substitution {
  readonly variables: Variables;
  /** Characters that all texts of a rendering may still come to; it is less after each. */
  readonly room: { left: number };
}

/**
 * The object with `${NAME}` expanded in its texts, and only there. A text stays a text, whatever it comes to: no value
 * becomes a number, a map or another key.
 */
export function substituteObject(object: JsonObject, { variables, room }: Substitution, refuse: Refuse): JsonObject {
  if (isMarked(object)) return object;

  function inText(text: string, field: string): string {
    try {
      const expanded = expand(text, variables);
      room.left -= expanded.length;
      if (room.left >= 0) return expanded;
      throw new SubstitutionError("comes to more, with what was replaced before it, than a rendering may have");
    } catch (error) {
      if (error instanceof SubstitutionError)
        refuse(
          field,
          `${errorMessage(error)}; an object with the annotation ${substituteMark}: disabled is left as it is`,
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
          `is a key with \${ in it, and keys are not substituted; an object with the annotation ${substituteMark}: disabled is left as it is`,
        );
      return [key, value === undefined ? undefined : inValue(value, at)] as const;
    });
    return Object.fromEntries(members);
  }

  return inMap(object, "");
}

/** As Flux has it, the value as it is written. */
export function isMarked({ metadata }: JsonObject): boolean {
  if (!isJsonObject(metadata)) return false;
  return [metadata.labels, metadata.annotations].some((map) => isJsonObject(map) && map[substituteMark] === "disabled");
}
