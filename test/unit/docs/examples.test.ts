import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exampleNames, readExample, repositoryOf } from "#local/stories/example-fleet.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const examples = new URL("../../../examples/", import.meta.url);
/** Files in repositories are for Kubernetes, Helm and kustomize. Templates of CloudFormation and RBAC have other tests. */
const foreign = /(^|\/)repositories\/|\.template\.yaml$|-rbac\.yaml$/;
const files = readdirSync(examples, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".yaml") && !foreign.test(path))
  .sort();

function documentsOf(file: string) {
  return parseDocuments(readFileSync(new URL(file, examples), "utf8"), file).map(({ value }) => value);
}

test("examples/ has a fleet to copy, and an example that `--example` can run", () => {
  expect(files).toEqual(
    expect.arrayContaining([
      "fleet/sync-group.yaml",
      "gates/windows.yaml",
      "platform/addons.yaml",
      "platform/shop.yaml",
    ]),
  );
  expect(exampleNames()).toEqual(["gates", "platform"]);
});

test.each(files)("every document in examples/%s is valid", (file) => {
  const documents = documentsOf(file);
  expect(documents.length).toBeGreaterThan(0);
  for (const value of documents) {
    const parsed = parseDocument(value);
    expect(parsed).toMatchObject({ ok: true, document: { apiVersion: ourApiVersion } });
    if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
  }
});

test("an unknown example is refused, and the error names the existing examples", () => {
  expect(() => readExample("nope")).toThrow("--example is nope; expected one of gates, platform");
  expect(() => readExample("fleet")).toThrow("expected one of gates, platform");
  expect(() => readExample("../examples/platform")).toThrow("expected one of gates, platform");
});

describe.each(exampleNames())("the example examples/%s", (name) => {
  const { sources, groups, repositories } = readExample(name);

  test("the repositories of the example have each folder that a Source makes available", () => {
    for (const source of sources) {
      const paths = Object.keys(repositories.get(repositoryOf(source)) ?? {});
      for (const folder of source.spec.paths)
        expect(
          paths.some((path) => path.startsWith(`${folder}/`)),
          `${source.metadata.name}: ${folder}`,
        ).toBe(true);
    }
  });

  test("the example has the Source of every template, and its repository has the folder of the template's path", () => {
    for (const { metadata, spec } of groups) {
      for (const { source, path } of spec.templates) {
        const from = sources.find(
          (each) => each.metadata.name === source && each.metadata.namespace === metadata.namespace,
        );
        expect(from, source).toBeDefined();
        const files = Object.keys((from && repositories.get(repositoryOf(from))) ?? {});
        const folder = `${path.replace(/\{\{.*$/, "")}/`.replace("//", "/");
        expect(
          files.some((file) => file.startsWith(folder)),
          path,
        ).toBe(true);
      }
    }
  });

  test("a Source of the example uses each of its repositories", () => {
    const folders = readdirSync(new URL(`${name}/repositories/`, examples));
    expect(folders.sort()).toEqual([...repositories.keys()].sort());
  });
});
