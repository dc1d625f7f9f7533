import { expect, test } from "vitest";
import { checkValuesSchema } from "#shared/source/helm/values-schema.ts";

test.each([
  ["maps", '{"not":', "{}", "}"],
  ["lists", "[", "", "]"],
])("a schema of %s that are nested too deeply is refused", (_what, open, inside, close) => {
  const nested = (depth: number) => new TextEncoder().encode(open.repeat(depth) + inside + close.repeat(depth));
  expect(() => checkValuesSchema("values.schema.json", nested(500))).not.toThrow();
  for (const depth of [502, 100_000])
    expect(() => checkValuesSchema("values.schema.json", nested(depth))).toThrow(
      /^values\.schema\.json: is nested more than 500 levels deep/,
    );
});
