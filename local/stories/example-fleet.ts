/** Reads the fleets in examples/ that come with the content of their repositories, so that a machine can run them. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { FileChanges } from "#local/git/repository.ts";
import { type Document, parseDocument } from "#shared/fleet/kinds/document.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
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
}

const examples = fileURLToPath(new URL("../../examples/", import.meta.url));
/** The subfolder of an example with one folder per repository. */
const repositoriesFolder = "repositories";

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
  return {
    sources,
    clusters: documents.filter((document) => document.kind === "Cluster"),
    groups: documents.filter((document) => document.kind === "SyncGroup"),
    others: documents.filter(({ kind }) => kind !== "Source" && kind !== "Cluster" && kind !== "SyncGroup"),
    repositories: new Map(
      sources.map((source) => [
        repositoryOf(source),
        filesOf(join(examples, name, repositoriesFolder, repositoryOf(source))),
      ]),
    ),
  };
}

/** For example `shop` for `https://github.com/acme/shop`. */
export function repositoryOf({ spec }: DocumentOf<"Source">): string {
  return basename(new URL(addressOf(spec)).pathname, ".git");
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
function filesOf(folder: string): FileChanges {
  if (!existsSync(folder))
    throw new Error(`the folder examples/${relative(examples, folder)} does not exist, but a Source names it`);
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path))]));
}
