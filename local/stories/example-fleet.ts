/** Reads the fleets in examples/ that come with the content of their repositories, so that a machine can run them. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { FileChanges } from "#local/git/repository.ts";
import { type Document, parseDocument } from "#shared/fleet/kinds/document.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

type DocumentOf<Kind extends Document["kind"]> = Extract<Document, { readonly kind: Kind }>;

export interface ExampleFleet {
  /** In the order of their files. */
  readonly clusters: readonly DocumentOf<"Cluster">[];
  readonly sources: readonly DocumentOf<"Source">[];
  readonly groups: readonly DocumentOf<"SyncGroup">[];
  /** Documents of all other kinds. */
  readonly others: readonly Document[];
  /** The content of each repository, by the last part of the URL in its Sources. */
  readonly repositories: ReadonlyMap<string, FileChanges>;
  /** The files of each chart that a Source takes from a registry, by the chart's name. */
  readonly charts: ReadonlyMap<string, Readonly<Record<string, Uint8Array>>>;
}

const examples = fileURLToPath(new URL("../../examples/", import.meta.url));
/** The subfolder of an example with one folder per repository. */
const repositoriesFolder = "repositories";
/** The subfolder with one folder per chart, for an example with a registry. */
const chartsFolder = "charts";

/** The names of the examples that can run. */
export function exampleNames(): readonly string[] {
  return readdirSync(examples)
    .filter((name) => existsSync(join(examples, name, repositoriesFolder)))
    .sort();
}

/** @throws Error that lists the examples, or that names the file, document and field that is wrong. */
export function readExample(name: string): ExampleFleet {
  const names = exampleNames();
  if (!names.includes(name)) throw new Error(`--example is ${name}; expected one of ${names.join(", ")}`);
  const documents = documentsOf(join(examples, name));
  const sources = documents.filter((document) => document.kind === "Source");
  const inFolder = (folder: string, part: string) => [part, filesOf(join(examples, name, folder, part))] as const;
  return {
    sources,
    clusters: documents.filter((document) => document.kind === "Cluster"),
    groups: documents.filter((document) => document.kind === "SyncGroup"),
    others: documents.filter(({ kind }) => kind !== "Source" && kind !== "Cluster" && kind !== "SyncGroup"),
    repositories: new Map(
      sources.flatMap(({ spec }) => (spec.git ? [inFolder(repositoriesFolder, repositoryOf(spec.git))] : [])),
    ),
    charts: new Map(sources.flatMap(({ spec }) => (spec.helm ? [inFolder(chartsFolder, spec.helm.chart)] : []))),
  };
}

/** For example `shop` for `https://github.com/acme/shop`. */
export function repositoryOf({ url }: { readonly url: string }): string {
  return basename(new URL(url).pathname, ".git");
}

function documentsOf(folder: string): readonly Document[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".yaml"));
  return files.sort().flatMap((file) => {
    const path = join(folder, file);
    return parseDocuments(readFileSync(path, "utf8"), path).map(({ value, document }) => {
      const parsed = parseDocument(value);
      if (parsed.ok) return parsed.document;
      const said = parsed.problems.map(({ field, message }) => `${field} ${message}`).join("; ");
      throw new Error(`${relative(examples, path)}, document ${document}: ${said}`);
    });
  });
}

/** The files by their path below the folder, with `/`. */
function filesOf(folder: string): Readonly<Record<string, Uint8Array>> {
  if (!existsSync(folder))
    throw new Error(`the folder examples/${relative(examples, folder)} does not exist, but a Source names it`);
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path))]));
}
