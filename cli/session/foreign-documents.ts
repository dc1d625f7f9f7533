/** Help for documents of Flux, Argo CD or Fleet: the same as documents of Starling. */
import { readdirSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { folderInRepository, repositoryFolders } from "#cli/session/repository-folders.ts";
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { type FleetFolder, fleetFileSaid } from "#shared/fleet/foreign/fleet-file.ts";
import { sameInStarling } from "#shared/fleet/foreign/same-in-starling.ts";
import { uniquelyNamed } from "#shared/fleet/foreign/unique-names.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";

export interface GivenDocument {
  readonly value: Json;
  readonly file: string;
}

export interface ForeignHelp {
  /** YAML, line by line; remarks are comments. */
  readonly lines: readonly string[];
  readonly next: string;
}

/** @returns undefined when no document belongs to another tool. */
export function foreignHelp(given: readonly GivenDocument[], cwd: string): ForeignHelp | undefined {
  const foreign = given.filter(({ value }) => foreignKindOf(value) !== undefined);
  const files = given.filter(({ value, file }) => isFleetFile(file) && isJsonObject(value) && !("kind" in value));
  if (foreign.length + files.length === 0) return undefined;
  const folders = repositoryFolders(foreign.map(({ file }) => resolve(cwd, file)));
  const { documents, remarks } = uniquelyNamed([
    sameInStarling(
      given.map(({ value }) => value),
      folders,
    ),
    ...files.map(({ value, file }) => fleetFileSaid(value, fleetFolder(resolve(cwd, file)))),
  ]);
  const title = documents.length === 0 ? "for Starling:" : "for Starling, the same is:";
  const yaml = documents.flatMap((document) => ["---", ...manifestYaml(document).trimEnd().split("\n")]);
  return {
    lines: ["", `# ${title}`, ...remarks.map((remark) => `# ${remark}`), ...yaml, ""],
    next:
      documents.length === 0
        ? "starling init   (writes an example fleet)"
        : "put the documents above into a file, then: starling validate -f FILE",
  };
}

function fleetFolder(file: string): FleetFolder {
  const beside = readdirSync(dirname(file));
  const isKustomized = kustomizationNames.some((name) => beside.includes(name));
  const plain = isKustomized ? "kustomization" : "manifests";
  return { folder: folderInRepository(file), holds: beside.includes("Chart.yaml") ? "chart" : plain };
}

function isFleetFile(file: string): boolean {
  return /^fleet\.ya?ml$/.test(basename(file));
}
