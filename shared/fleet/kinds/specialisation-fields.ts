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
    "must be a name such as DOMAIN: at most 128 characters of A-Z, a-z, 0-9 and _, not beginning with a digit",
  );

const parameterValue = z.string("must be a text; put it in quotes").max(4096, "must have at most 4096 characters");

const targetNamespace = boundedText(1024).refine(
  (text) => text.includes("{{") || nameSchema.safeParse(text).success,
  "must be the name of a namespace: 1 to 63 characters of a-z, 0-9 and -, or contain an expression such as {{ cluster.name }}",
);

export const specialisationFields = {
  /** Texts by name. A text may contain expressions such as `{{ cluster.name }}`, as `path` may, but no other parameter. */
  parameters: boundedMap(parameterName, parameterValue, 100).optional(),
  /**
   * Whether `${NAME}` in the texts of objects is replaced by the parameter; with `mode: text` in their YAML, as Flux
   * does.
   */
  substitute: z
    .union([z.boolean(), z.strictObject({ mode: z.literal("text") })], "must be true, false or {mode: text}")
    .optional(),
  /** Namespace of every namespaced object; it may contain expressions such as `{{ cluster.name }}`. */
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
      problems.push({
        field: `${at}.createNamespace`,
        message: "needs targetNamespace: the name of the namespace to create",
      });
    const wrong = Object.entries(parameters).flatMap(([name, text]) => {
      const message =
        checkPathTemplate(text, "text") ??
        (refersToParameters(text)
          ? "refers to a parameter; write its text here, because parameters cannot refer to each other"
          : undefined);
      return message === undefined ? [] : [{ field: `${at}.parameters.${name}`, message }];
    });
    const [first] = Object.keys(parameters);
    problems.push(...wrong);
    if (first === undefined || isUsed) return problems;
    const message = `have no effect; set substitute: true, which replaces \${${first}} in the texts of objects, or use an expression such as {{ params.${first} }}`;
    return [...problems, { field: `${at}.parameters`, message }];
  });
}
