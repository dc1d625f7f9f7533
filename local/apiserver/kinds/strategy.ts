import type { Cluster } from "#apiserver/cluster.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { valueAt } from "#apiserver/object-fields.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

export interface StrategyContext {
  readonly cluster: Cluster;
  /** Undefined on create. */
  readonly live: JsonObject | undefined;
}

export type Rule = (object: JsonObject, context: StrategyContext) => FieldError[];

/** The rules of a kind beyond those for every object. */
export interface Strategy {
  /** Sets the fields that only the server decides. */
  readonly prepare?: (object: JsonObject, context: StrategyContext) => JsonObject;
  readonly validate?: Rule;
  /** Checks a new status. */
  readonly validateStatus?: Rule;
  readonly warn?: (object: JsonObject, context: StrategyContext) => string[];
}

export function immutable(field: string, value: Json | undefined): FieldError {
  return fieldErrors.invalid(field, value ?? null, "field is immutable");
}

/** Refuses changes of these fields. A path starts at the object. */
export function immutableAt(...paths: readonly string[]): Rule {
  return (object, { live }) => {
    if (live === undefined) return [];
    return paths.flatMap((path) => {
      const value = valueAt(object, ...path.split("."));
      return deepEqual(value, valueAt(live, ...path.split("."))) ? [] : [immutable(path, value)];
    });
  };
}

/** Refuses negative numbers in these fields. */
export function notNegative(...paths: readonly string[]): Rule {
  return (object) =>
    paths.flatMap((path) => {
      const value = valueAt(object, ...path.split("."));
      if (typeof value !== "number" || value >= 0) return [];
      return [fieldErrors.invalid(path, value, "must be greater than or equal to 0")];
    });
}

export function all(...rules: readonly Rule[]): Rule {
  return (object, context) => rules.flatMap((rule) => rule(object, context));
}
