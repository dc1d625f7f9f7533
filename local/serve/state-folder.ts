/** What a state folder remembers between two starts, because rows, kubeconfigs and clones name it. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { LocalFailure } from "#local/base/local-failure.ts";
import { errorMessage } from "#shared/base/errors.ts";

/** Counts up when an older Starling could not read what a newer one wrote. */
const stateVersion = 1;

/** The clusters a machine keeps in sync: its own embedded ones, one of the user's, or a real API server of its own. */
export const clusterChoiceSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("embedded"), count: z.number().int() }),
  z.object({ kind: z.literal("kubeconfig"), path: z.string(), context: z.string() }),
  z.object({ kind: z.literal("envtest") }),
]);
export type ClusterChoice = z.infer<typeof clusterChoiceSchema>;

/** Of a first start that names none. */
export const defaultClusters: ClusterChoice = { kind: "embedded", count: 3 };

const port = z.number().int();
export const portsSchema = z.object({ api: port, git: port, clusters: port });
export type Ports = z.infer<typeof portsSchema>;

const identitySchema = z.object({
  version: z.literal(stateVersion),
  accessKey: z.object({ accessKeyId: z.string(), secretAccessKey: z.string() }),
  gitTls: z.object({ key: z.string(), cert: z.string() }),
  /** Absent where an older Starling wrote it, whose git server let everybody in. */
  gitPassword: z.string().optional(),
  /** Absent where an older Starling wrote it, when every machine was the same installation. */
  installationId: z.string().optional(),
  clusters: clusterChoiceSchema,
  ports: portsSchema.partial(),
  repository: z.string().optional(),
});
type Saved = z.infer<typeof identitySchema>;
export type Identity = Omit<Saved, "version">;

export const identityFile = (folder: string) => join(folder, "identity.json");

/**
 * What the folder remembers; undefined before its first start.
 * @throws LocalFailure when another version of Starling wrote it, or nobody did.
 */
export function readIdentity(folder: string): Identity | undefined {
  const path = identityFile(folder);
  if (!existsSync(path)) return undefined;
  const next = "starling local up --state DIR   (another folder begins afresh)";
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
        ? "a newer starling wrote it; use that one"
        : "an older starling wrote it";
    throw new LocalFailure(`the state in ${folder} ${which}, and this starling reads ${stateVersion}: ${remedy}`, {
      exit: "unknown",
      next,
    });
  }
  const parsed = identitySchema.safeParse(saved);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  throw new LocalFailure(`${path} is not what starling wrote there: ${wrong}`, { exit: "unknown", next });
}

/** Holds keys: its owner's only. Replaced in one step. */
export function writeIdentity(folder: string, identity: Identity): void {
  const path = identityFile(folder);
  const saved: Saved = { version: stateVersion, ...identity };
  writeFileSync(`${path}.new`, `${JSON.stringify(saved, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * The clusters of the next start: those the folder has, since rows name them; at its first, those that are wanted.
 * @throws LocalFailure when the folder has others than are wanted.
 */
export function clustersOf(
  folder: string,
  { known, desired }: { readonly known: ClusterChoice | undefined; readonly desired: ClusterChoice | undefined },
): ClusterChoice | undefined {
  if (known === undefined || desired === undefined) return desired ?? known;
  if (flagsOf(known) === flagsOf(desired)) return known;
  const message = `${flagsOf(desired)} is asked for, and ${folder} has ${describeClusters(known)} (${flagsOf(known)})`;
  throw new LocalFailure(message, {
    exit: "wrongInput",
    next: `starling local up --state DIR ${flagsOf(desired)}   (or leave it out, to go on with what is there)`,
  });
}

/** As the user asks for them: `--clusters 3`. */
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

/** `3 embedded clusters`. */
export function describeClusters(choice: ClusterChoice): string {
  switch (choice.kind) {
    case "embedded":
      return `${choice.count} embedded ${choice.count === 1 ? "cluster" : "clusters"}`;
    case "kubeconfig":
      return `the cluster of context ${choice.context}`;
    case "envtest":
      return "a kube-apiserver of its own";
  }
}
