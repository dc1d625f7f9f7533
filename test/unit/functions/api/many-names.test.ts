/** A group that names many Sources and revisions is one transaction, which DynamoDB limits to 100 writes. */
import { expect, test } from "vitest";
import { documentChange } from "#functions/api/write/object-change.ts";
import { type Document, parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";

const at = { now: new Date("2026-03-01T10:00:00.000Z"), uid: "u1" };

/** Twenty templates with a Source each, some of them with values of another one. */
function groupOf({ prefix = "a", values, revision }: { prefix?: string; values: number; revision?: string }): Document {
  const parsed = parseDocument({
    apiVersion: "starling.dev/v1alpha1",
    kind: "SyncGroup",
    metadata: { name: "web", namespace: "shop" },
    spec: {
      clusters: { all: true },
      templates: Array.from({ length: 20 }, (_, index) => ({
        name: `t${index}`,
        source: `${prefix}-${index}`,
        apply: { defaultNamespace: "shop" },
        render: { helm: { valuesFrom: index < values ? [{ source: `${prefix}-v${index}`, path: "a.yaml" }] : [] } },
        ...(revision === undefined ? {} : { revision }),
      })),
    },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  return parsed.document;
}

test("a group that names too many Sources and revisions is refused with both numbers", () => {
  expect(semanticProblems(groupOf({ values: 20 }))).toEqual([]);
  expect(semanticProblems(groupOf({ values: 8, revision: "v1" }))).toEqual([]);
  expect(semanticProblems(groupOf({ values: 9, revision: "v1" }))).toEqual([
    {
      field: "spec.templates",
      message: "names 29 Sources and 20 revisions; a group names at most 48 of both, so divide it into several",
    },
  ]);
});

test("the largest group fits into one transaction, also when an edit replaces all of its names by others", () => {
  const created = documentChange(undefined, groupOf({ values: 8, revision: "v1" }), at);
  const replaced = documentChange(created.after, groupOf({ prefix: "b", values: 8, revision: "v2" }), at);
  expect([created, replaced].map(({ writes }) => writes.length)).toEqual([50, 77]);
});
