/** Help for whoever gives documents of Flux, Argo CD or Fleet: the documents of Starling that say the same. */
import { resolve } from "node:path";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { repositoryFolders } from "#cli/session/repository-folders.ts";
import type { Json } from "#shared/base/json.ts";
import { sameInStarling } from "#shared/fleet/foreign/same-in-starling.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";

export interface GivenDocument {
  readonly value: Json;
  readonly file: string;
}

export interface ForeignHelp {
  /** YAML, line by line; remarks are comments. */
  readonly lines: readonly string[];
  readonly next: string;
}

/** @returns undefined where no document is another tool's. */
export function foreignHelp(given: readonly GivenDocument[], cwd: string): ForeignHelp | undefined {
  const foreign = given.filter(({ value }) => foreignKindOf(value) !== undefined);
  if (foreign.length === 0) return undefined;
  const folders = repositoryFolders(foreign.map(({ file }) => resolve(cwd, file)));
  const { documents, remarks } = sameInStarling(
    given.map(({ value }) => value),
    folders,
  );
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
