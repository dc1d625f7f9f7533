import { describe, expect, test } from "vitest";
import type { WritableKind } from "#shared/fleet/kinds/document.ts";
import { fieldsOf, type KindField } from "#shared/fleet/kinds/kind-fields.ts";
import {
  errorsOf,
  exampleDocuments,
  fieldSections,
  readSpecPage,
  typesText,
  updateSpecPage,
  withWrong,
  wrongValues,
} from "#test/support/spec-page.ts";

const selection =
  /^spec\.(?:clusters|rollout\.stages\[\]\.clusters|templates\[\]\.overrides\[\]\.clusters)\.(?=selector|names|notNames|all)/;
/** Fields of an override that its template has, too. */
const override = /^spec\.templates\[\]\.overrides\[\]\.(?!clusters|disabled)/;

const update = "`STARLING_UPDATE_DOCS=1 npm test -- test/unit/docs/spec-pages.test.ts` writes types and errors";

/** The fields that a kind's own page explains. */
function ownFields(kind: WritableKind): readonly KindField[] {
  return fieldsOf(kind).filter(
    ({ path }) =>
      !path.startsWith("metadata.") &&
      !selection.test(path) &&
      !override.test(path) &&
      (kind !== "Sync" || path === "spec.cluster"),
  );
}

/** The fields that docs/spec/common.md explains for all kinds. */
function commonFields(): readonly KindField[] {
  const all = fieldsOf("SyncGroup");
  return all.filter(({ path }) => path.startsWith("metadata.") || path.startsWith("spec.clusters."));
}

const pages: readonly (readonly [name: string, kind: WritableKind, fields: readonly KindField[]])[] = [
  ["common", "SyncGroup", commonFields()],
  ["source", "Source", ownFields("Source")],
  ["receiver", "Receiver", ownFields("Receiver")],
  ["clusterdiscovery", "ClusterDiscovery", ownFields("ClusterDiscovery")],
  ["cluster", "Cluster", ownFields("Cluster")],
  ["clustervalues", "ClusterValues", ownFields("ClusterValues")],
  ["window", "Window", ownFields("Window")],
  ["syncgroup", "SyncGroup", ownFields("SyncGroup")],
  ["sync", "Sync", ownFields("Sync")],
];

if (process.env.STARLING_UPDATE_DOCS === "1")
  for (const [name, kind, fields] of pages) updateSpecPage(name, kind, fields);

describe.each(pages)("docs/spec/%s.md", (name, _kind, fields) => {
  const page = readSpecPage(name);
  const sections = fieldSections(page);

  test("the page has a section for every field of the schema, and for no other", () => {
    expect(sections.flatMap((section) => section.fields).toSorted()).toEqual(fields.map(({ path }) => path).toSorted());
  });

  test("the page has the type, the default and the bound of each field from the schema", () => {
    const wrong = sections.filter((section) => !section.text.includes(`\n\n${typesText(section, fields)}\n`));
    expect(
      wrong.map((section) => section.fields),
      update,
    ).toEqual([]);
  });

  test("every example on the page is valid", () => {
    const examples = exampleDocuments(page);
    expect(examples.length).toBeGreaterThan(0);
    expect(examples.flatMap(errorsOf)).toEqual([]);
  });

  test("the page has an example or an explanation for each field", () => {
    const bare = sections.filter((section) => section.text.trim().split("\n\n").length < 3);
    expect(bare.map((section) => section.fields)).toEqual([]);
  });

  test("the page shows the errors that the wrong values really cause", () => {
    const tried = sections.flatMap((section) =>
      wrongValues(section).map(({ yaml, error }) => ({
        yaml,
        error,
        errors: errorsOf(withWrong(page, section, yaml)),
      })),
    );
    const untrue = tried.filter(({ error, errors }) => !errors.includes(error));
    expect(untrue, update).toEqual([]);
  });
});
