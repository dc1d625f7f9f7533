/** The settings that a state folder keeps between two starts, because rows, kubeconfigs and clones depend on them. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { LocalFailure } from "#local/base/local-failure.ts";
import { errorMessage } from "#shared/base/errors.ts";

/** Increases when an older Starling cannot read the files of a newer one. */
const stateVersion = 1;

/** The clusters that a machine keeps in sync: embedded clusters, one cluster of the user, or a real API server. */
export const clusterChoiceSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("embedded"), count: z.number().int() }),
  z.object({ kind: z.literal("kubeconfig"), path: z.string(), context: z.string() }),
  z.object({ kind: z.literal("envtest") }),
]);
export type ClusterChoice = z.infer<typeof clusterChoiceSchema>;

/** The clusters of a first start without flags for clusters. */
export const defaultClusters: ClusterChoice = { kind: "embedded", count: 3 };

const port = z.number().int();
export const portsSchema = z.object({ api: port, git: port, clusters: port });
export type Ports = z.infer<typeof portsSchema>;

const identitySchema = z.object({
  version: z.literal(stateVersion),
  accessKey: z.object({ accessKeyId: z.string(), secretAccessKey: z.string() }),
  gitTls: z.object({ key: z.string(), cert: z.string() }),
  /** Undefined in a folder of an older Starling, whose git server needed no password. */
  gitPassword: z.string().optional(),
  /** Undefined in a folder of an older Starling, in which every machine had the same installation id. */
  installationId: z.string().optional(),
  clusters: clusterChoiceSchema,
  ports: portsSchema.partial(),
  repository: z.string().optional(),
});
type Saved = z.infer<typeof identitySchema>;
export type Identity = Omit<Saved, "version">;

export const identityFile = (folder: string) => join(folder, "identity.json");

/**
 * The settings of the folder; undefined before the first start. @throws LocalFailure when another version of Starling,
 * or another program, wrote the file.
 */
export function readIdentity(folder: string): Identity | undefined {
  const path = identityFile(folder);
  if (!existsSync(path)) return undefined;
  const next = "starling local up --state DIR   (a new folder starts without state)";
  let saved: unknown;
  try {
    saved = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new LocalFailure(`cannot read ${path}: ${errorMessage(cause)}`, { exit: "unknown", next, cause });
  }
  const version = z.object({ version: z.number() }).safeParse(saved).data?.version;
  if (version !== stateVersion) {
    const which = version === undefined ? "has no version" : `has version ${version}`;
    const remedy =
      version !== undefined && version > stateVersion
        ? "a newer Starling wrote it, so use that version"
        : "an older Starling wrote it";
    throw new LocalFailure(
      `the state in ${folder} ${which}, but this Starling reads version ${stateVersion}; ${remedy}`,
      {
        exit: "unknown",
        next,
      },
    );
  }
  const parsed = identitySchema.safeParse(saved);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  throw new LocalFailure(`${path} is not a state file of Starling: ${wrong}`, { exit: "unknown", next });
}

/** The file contains keys, so only its owner can read it. It is replaced in one step. */
export function writeIdentity(folder: string, identity: Identity): void {
  const path = identityFile(folder);
  const saved: Saved = { version: stateVersion, ...identity };
  writeFileSync(`${path}.new`, `${JSON.stringify(saved, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * The clusters of the next start. These are the folder's clusters, because rows name them, or at a first start the
 * desired ones. @throws LocalFailure when the folder has other clusters than desired.
 */
export function clustersOf(
  folder: string,
  { known, desired }: { readonly known: ClusterChoice | undefined; readonly desired: ClusterChoice | undefined },
): ClusterChoice | undefined {
  if (known === undefined || desired === undefined) return desired ?? known;
  if (flagsOf(known) === flagsOf(desired)) return known;
  const message = `cannot change the clusters to ${flagsOf(desired)}: ${folder} has ${describeClusters(known)} (${flagsOf(known)})`;
  throw new LocalFailure(message, {
    exit: "wrongInput",
    next: `starling local up --state DIR ${flagsOf(desired)}   (or leave the flag out to keep the current clusters)`,
  });
}

/** The choice as flags, for example `--clusters 3`. */
function flagsOf(choice: ClusterChoice): string {
  switch (choice.kind) {
    case "embedded":
      return `--clusters ${choice.count}`;
    case "kubeconfig":
      return `--kubeconfig ${choice.path} --context ${choice.context}`;
    case "envtest":
      return "--envtest";
  }
}

/** For example `3 embedded clusters`. */
export function describeClusters(choice: ClusterChoice): string {
  switch (choice.kind) {
    case "embedded":
      return `${choice.count} embedded ${choice.count === 1 ? "cluster" : "clusters"}`;
    case "kubeconfig":
      return `the cluster of context ${choice.context}`;
    case "envtest":
      return "its own kube-apiserver";
  }
}
