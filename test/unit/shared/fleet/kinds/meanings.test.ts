import { describe, expect, test } from "vitest";
import { describedSchema, everySchema } from "#shared/fleet/kinds/described-schema.ts";
import { writableKinds } from "#shared/fleet/kinds/document.ts";
import { fieldsOf } from "#shared/fleet/kinds/kind-fields.ts";
import { meaningOf } from "#shared/fleet/kinds/meanings.ts";

describe.each(writableKinds)("%s", (kind) => {
  test("every field has a meaning", () => {
    const silent = fieldsOf(kind).filter(({ path }) => meaningOf(kind, path) === undefined);
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  test("each meaning is one line of text without links", () => {
    for (const { path } of fieldsOf(kind))
      expect([path, meaningOf(kind, path)]).toEqual([path, expect.not.stringMatching(/\]\(|\n|^$/)]);
  });
});

test("schemas have the meanings as descriptions, which editors show", () => {
  const schema = describedSchema("SyncGroup") as {
    properties: { spec: { properties: { rollout: { properties: Record<string, { description?: string }> } } } };
  };
  expect(schema.properties.spec.properties.rollout.properties.progressDeadline?.description).toMatch(
    /^longest time without progress/,
  );
});

test("one schema covers files with any of the kinds", () => {
  const { oneOf, $schema } = everySchema() as { oneOf: { title: string }[]; $schema: string };
  expect(oneOf.map(({ title }) => title)).toEqual(writableKinds);
  expect($schema).toContain("json-schema.org");
});
