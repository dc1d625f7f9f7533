import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sameInStarling } from "#shared/fleet/foreign/same-in-starling.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { fieldsOf } from "#shared/fleet/kinds/kind-fields.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { foreignKindsIn } from "#shared/source/foreign-kinds-in.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const page = readFileSync(new URL("../../../docs/tasks/migrate.md", import.meta.url), "utf8");

function examplesBelow(title: string): readonly string[] {
  const [, text = ""] = page.split(`\n## ${title}\n`);
  const [section = ""] = text.split("\n## ");
  return [...section.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = ""]) => yaml);
}

describe("docs/tasks/migrate.md", () => {
  test("every document in the section In Starling is valid", () => {
    const documents = examplesBelow("In Starling").flatMap((text) => parseDocuments(text, "migrate.md"));
    expect(documents).toHaveLength(3);
    for (const { value } of documents) {
      const parsed = parseDocument(value);
      expect(parsed).toMatchObject({ ok: true });
      if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
    }
  });

  test.each(["From an ApplicationSet", "From Flux", "From Fleet"])(
    "Starling recognises each document in the section %s, and writes documents that do the same",
    (title) => {
      const documents = examplesBelow(title).flatMap((text) => parseManifests(text, "migrate.md"));
      expect(documents.length).toBeGreaterThan(0);
      expect(foreignKindsIn(readManifests(documents))).toHaveLength(documents.length);
      expect(sameInStarling(documents.map(({ object }) => object)).documents.length).toBeGreaterThan(1);
    },
  );

  test("every field of templates and groups that the page names exists", () => {
    const known = new Set(fieldsOf("SyncGroup").map(({ path }) => path.replaceAll("[]", "")));
    const templates = [
      "parameters",
      "overrides",
      "path",
      "render.helm",
      "targetNamespace",
      "createNamespace",
      "substitute",
    ];
    for (const field of [
      ...templates,
      "apply.prune",
      "apply.drift",
      "apply.interval",
      "apply.defaultNamespace",
      "patches",
    ]) {
      expect(page).toContain(`\`${field}`);
      expect(known).toContain(`spec.templates.${field}`);
    }
    for (const field of ["clusters.selector", "rollout.stages"]) expect(known).toContain(`spec.${field}`);
  });
});
