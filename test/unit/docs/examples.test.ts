import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exampleNames, readExample, repositoryOf } from "#local/stories/example-fleet.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const examples = new URL("../../../examples/", import.meta.url);
/** Files in repositories are for Kubernetes, Helm and kustomize. Templates of CloudFormation and RBAC have other tests. */
const foreign = /(^|\/)(repositories|charts)\/|\.template\.yaml$|-rbac\.yaml$/;
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
      "registry/sources.yaml",
    ]),
  );
  expect(exampleNames()).toEqual(["gates", "platform", "registry"]);
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
  expect(() => readExample("nope")).toThrow("--example is nope; expected one of gates, platform, registry");
  expect(() => readExample("fleet")).toThrow("expected one of gates, platform, registry");
  expect(() => readExample("../examples/platform")).toThrow("expected one of gates, platform, registry");
});

describe.each(exampleNames())("the example examples/%s", (name) => {
  const { clusters, sources, groups, repositories, charts } = readExample(name);
  /** The paths of the files that the Source has, from its repository or its chart. */
  const pathsOf = ({ spec }: (typeof sources)[number]) =>
    Object.keys(
      (spec.helm ? charts.get(spec.helm.chart) : repositories.get(repositoryOf({ url: addressOf(spec) }))) ?? {},
    );

  test("the repositories of the example have each folder that a Source makes available", () => {
    for (const source of sources) {
      const paths = pathsOf(source);
      for (const folder of source.spec.paths)
        expect(
          paths.some((path) => folder === "." || path.startsWith(`${folder}/`)),
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
        const files = from === undefined ? [] : pathsOf(from);
        const folder = path === "." ? "" : `${path.replace(/\{\{.*$/, "")}/`.replace("//", "/");
        expect(
          files.some((file) => file.startsWith(folder)),
          path,
        ).toBe(true);
      }
    }
  });

  test("a Source of the example uses each of its repositories and charts", () => {
    const folders = (part: string) => {
      const url = new URL(`${name}/${part}/`, examples);
      return existsSync(url) ? readdirSync(url).sort() : [];
    };
    expect(folders("repositories")).toEqual([...repositories.keys()].sort());
    expect(folders("charts")).toEqual([...charts.keys()].sort());
  });

  test("a Source has the files of values that a template takes from it, for each region of the clusters", () => {
    for (const { spec } of groups)
      for (const { render } of spec.templates)
        for (const { source, path, optional } of render?.helm?.valuesFrom ?? []) {
          const from = sources.find(({ metadata }) => metadata.name === source);
          if (from === undefined || optional) continue;
          for (const region of new Set(clusters.map(({ metadata }) => metadata.labels?.region ?? "")))
            expect(pathsOf(from)).toContain(path.replace("{{ cluster.labels.region }}", region));
        }
  });
});
