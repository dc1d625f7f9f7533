import { resolve } from "node:path";
import { parseArgs } from "node:util";

export const demoUsage = `npm run demo -- [options]

  --example NAME       show the fleet in examples/NAME, with its clusters and repositories
  --repo URL-or-path   roll out this git repository instead of the demo's own
  --path DIR           a folder in the repository; it may contain {{ cluster.labels.ring }}
                                                                      (default .)
  --ref REF            a branch, a tag or a commit id                 (default HEAD)
  --clusters N         create this many clusters, 1 to 300, in the rings canary, early, broad
                                                                      (default 12)
  --keep DIR           keep everything running until Ctrl-C, and write DIR/kubeconfig
                       and DIR/starling.json
`;

export interface DemoOptions {
  /** Undefined for the demo's own repository. */
  readonly user: { readonly repo: string; readonly path: string; readonly ref: string | undefined } | undefined;
  readonly clusters: number;
  /** The example fleet that the demo shows instead of its own. */
  readonly example: string | undefined;
  /** An absolute path. */
  readonly keep: string | undefined;
}

const maxClusters = 300;
const defaultClusters = 12;

/**
 * @param folder - the start of relative paths. @returns undefined when help is requested. @throws Error that names the
 * option and the values that it accepts.
 */
export function readDemoOptions(args: readonly string[], folder: string): DemoOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      repo: { type: "string" },
      path: { type: "string" },
      ref: { type: "string" },
      clusters: { type: "string" },
      example: { type: "string" },
      keep: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) return undefined;
  const { repo, path, ref, keep, example } = values;
  for (const [name, value] of Object.entries({ repo, path, ref, keep, example })) {
    if (value === "") throw new Error(`--${name} is empty`);
  }
  const clusters = Number(values.clusters ?? defaultClusters);
  if (!Number.isInteger(clusters) || clusters < 1 || clusters > maxClusters) {
    throw new Error(`--clusters is ${values.clusters}; expected a whole number from 1 to ${maxClusters}`);
  }
  if (repo === undefined && (path ?? ref) !== undefined) {
    throw new Error("--path and --ref need --repo, because the demo's own repository has one path and one branch");
  }
  if (example !== undefined && (repo ?? values.clusters) !== undefined) {
    throw new Error("--repo and --clusters do not work with --example, which has its own repositories and clusters");
  }
  return {
    example,
    user: repo === undefined ? undefined : { repo: localPath(repo, folder), path: path ?? ".", ref },
    clusters,
    keep: keep === undefined ? undefined : resolve(folder, keep),
  };
}

function localPath(repo: string, folder: string): string {
  return /^([a-z+]+:|[^/]+@[^/]+:)/.test(repo) ? repo : resolve(folder, repo);
}
