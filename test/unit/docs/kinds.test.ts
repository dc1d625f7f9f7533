import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseDocument, type WritableKind } from "#shared/fleet/kinds/document.ts";
import { fieldsOf } from "#shared/fleet/kinds/fields.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const page = readFileSync(new URL("../../../docs/kinds.md", import.meta.url), "utf8");
const kinds: readonly WritableKind[] = ["Source", "ClusterDiscovery", "Cluster", "ClusterValues", "SyncGroup", "Sync"];
const selection =
  /^spec\.(?:clusters|rollout\.stages\[\]\.clusters|templates\[\]\.overrides\[\]\.clusters)\.(?=selector|names|notNames|all)/;
/** Fields that an override has of its template. */
const override = /^spec\.templates\[\]\.overrides\[\]\.(?!clusters|disabled)/;

function section(title: string): string {
  const start = page.indexOf(`\n## ${title}\n`);
  expect(start, `section ${title}`).toBeGreaterThan(0);
  const end = page.indexOf("\n## ", start + 1);
  return page.slice(start, end === -1 ? undefined : end);
}

/** The first columns of the rows whose first cell is a field. */
function tableOf(text: string, columns: number): readonly string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) =>
      line
        .split("|")
        .slice(1, columns + 1)
        .map((cell) => cell.trim().replaceAll("`", ""))
        .join(" | "),
    );
}

describe("docs/kinds.md", () => {
  test.each(kinds)("lists the fields of %s as the schema has them", (kind) => {
    const expected = fieldsOf(kind)
      .filter((field) => !selection.test(field.path) && !override.test(field.path))
      .map((field) => `${field.path} | ${field.type} | ${field.required ? "required" : (field.default ?? "")}`);
    expect([...tableOf(section(kind), 3)].sort()).toEqual([...expected].sort());
  });

  test("is right in that an override has the template's fields, but for its name and its Source", () => {
    const said = (of: RegExp) =>
      fieldsOf("SyncGroup").flatMap(({ path, type, most = "" }) =>
        of.test(path) ? [`${path.replace(of, "")} | ${type} | ${most}`] : [],
      );
    const template = said(/^spec\.templates\[\]\.(?!name$|source$|overrides)/);
    expect(said(override).sort()).toEqual(template.sort());
  });

  test("lists what each field may have at most", () => {
    const all = kinds.flatMap(fieldsOf).filter(({ path }) => !override.test(path));
    const fields = all.map((field) => ({ ...field, path: field.path.replace(selection, "") }));
    const expected = fields.flatMap(({ path, most }) => (most === undefined ? [] : [`${path} | ${most}`]));
    expect(tableOf(section("Limits"), 2)).toEqual([...new Set(expected)].sort());
  });

  test("lists the fields of a selection once, for everywhere", () => {
    const expected = new Set(
      fieldsOf("SyncGroup")
        .filter((field) => selection.test(field.path))
        .map((field) => `${field.path.replace(selection, "")} | ${field.type}`),
    );
    expect([...tableOf(section("Selecting clusters"), 2)].sort()).toEqual([...expected].sort());
  });

  test.each(kinds)("has an example of %s that is valid", (kind) => {
    const example = /```yaml\n(.*?)```/s.exec(section(kind))?.[1] ?? "";
    const [document] = parseDocuments(example, "kinds.md");
    const parsed = parseDocument(document?.value);
    expect(parsed).toMatchObject({ ok: true, document: { kind } });
    if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
  });

  test("docs/helm.md has an example that is valid", () => {
    const text = readFileSync(new URL("../../../docs/helm.md", import.meta.url), "utf8");
    const [document] = parseDocuments(/```yaml\n(.*?)```/s.exec(text)?.[1] ?? "", "helm.md");
    const parsed = parseDocument(document?.value);
    expect(parsed).toMatchObject({ ok: true, document: { kind: "SyncGroup" } });
    if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
  });

  test.each([
    "fleet/source.yaml",
    "fleet/clusters.yaml",
    "fleet/sync-group.yaml",
    "charts/source.yaml",
    "charts/sync-group.yaml",
  ])("examples/%s is valid", (file) => {
    const text = readFileSync(new URL(`../../../examples/${file}`, import.meta.url), "utf8");
    for (const { value } of parseDocuments(text, file)) {
      const parsed = parseDocument(value);
      expect(parsed).toMatchObject({ ok: true });
      if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
    }
  });
});
