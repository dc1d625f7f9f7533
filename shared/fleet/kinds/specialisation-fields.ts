/** Fields of a template for differences between clusters. */
import * as z from "zod";
import { boundedMap, boundedText } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { checkPathTemplate, refersToParameters } from "#shared/base/path-template.ts";
import { editFields } from "#shared/source/edits.ts";

const parameterName = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
    "must be a name as DOMAIN: at most 128 of A-Z, a-z, 0-9 and _, not beginning with a digit",
  );

const parameterValue = z.string("must be a text; put it in quotes").max(4096, "must have at most 4096 characters");

const targetNamespace = boundedText(1024).refine(
  (text) => text.includes("{{") || nameSchema.safeParse(text).success,
  "must be the name of a namespace: 1 to 63 characters of a-z, 0-9 and -, or hold {{ cluster.name }} or its like",
);

export const specialisationFields = {
  /** By name; a text may contain `{{ cluster.name }}` and the like, as `path` may, but no other parameter. */
  parameters: boundedMap(parameterName, parameterValue, 100).optional(),
  /**
   * Whether `${NAME}` in the texts of objects is replaced by the parameter; with `mode: text` in their YAML, as Flux
   * does.
   */
  substitute: z
    .union([z.boolean(), z.strictObject({ mode: z.literal("text") })], "must be true, false or {mode: text}")
    .optional(),
  /** Namespace of every namespaced object; may contain `{{ cluster.name }}` and the like. */
  targetNamespace: targetNamespace.optional(),
  ...editFields,
};

const specialised = z.strictObject(specialisationFields);
export type SpecialisationFields = z.infer<typeof specialised>;

interface Problem {
  readonly field: string;
  readonly message: string;
}

/**
 * Checks that the schema cannot state.
 * @param all - the fields of the template, and those of its overrides, by position.
 * @param expressions - other texts that may refer to parameters.
 */
export function specialisationProblems(
  all: readonly (readonly [at: string, fields: SpecialisationFields])[],
  expressions: readonly string[],
): readonly Problem[] {
  const isUsed =
    all.some(
      ([, { substitute = false, targetNamespace = "" }]) => substitute !== false || refersToParameters(targetNamespace),
    ) || expressions.some(refersToParameters);
  const isNamed = all.some(([, fields]) => fields.targetNamespace !== undefined);
  return all.flatMap(([at, { parameters = {}, targetNamespace: namespace = "", createNamespace }]) => {
    const problem = checkPathTemplate(namespace, "text");
    const problems = problem === undefined ? [] : [{ field: `${at}.targetNamespace`, message: problem }];
    if (createNamespace !== undefined && !isNamed)
      problems.push({ field: `${at}.createNamespace`, message: "needs targetNamespace, which names it" });
    const wrong = Object.entries(parameters).flatMap(([name, text]) => {
      const message =
        checkPathTemplate(text, "text") ??
        (refersToParameters(text) ? "refers to a parameter, which only other fields may" : undefined);
      return message === undefined ? [] : [{ field: `${at}.parameters.${name}`, message }];
    });
    const [first] = Object.keys(parameters);
    problems.push(...wrong);
    if (first === undefined || isUsed) return problems;
    const message = `do nothing without substitute: true, which puts them in place of \${${first}} in the texts of objects, and without an expression as {{ params.${first} }}`;
    return [...problems, { field: `${at}.parameters`, message }];
  });
}
