/** A machine with clusters and a git server, for the demo and for `starling local up`. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { onlyFromHere } from "#local/base/from-here.ts";
import { createTlsCertificate, type TlsCertificate } from "#local/base/tls-certificate.ts";
import {
  type GitCredentials,
  gitCredentials,
  gitSecret,
  gitSecretName,
  newGitPassword,
} from "#local/git/git-access.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { sendGithubPush } from "#local/git/github-push.ts";
import { zeroId } from "#local/git/repository.ts";
import { type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import { type Machine, type MachineOptions, startMachine } from "#local/machine/machine.ts";
import { localEksAuthenticator, registerEksClusters } from "#local/machine/register-eks-clusters.ts";
import { fleetClusters, rings } from "#local/machine/rings.ts";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { defined } from "#shared/base/defined.ts";
import type { GitUpstream } from "#shared/fleet/kinds/source.ts";

export interface Stack {
  readonly machine: Machine;
  readonly clusters: ClusterHost;
  readonly git: GitServer;
  /** The credentials for pushes and fetches. A secret holds them for Sources of the git server. */
  readonly gitCredentials: GitCredentials;
  /** The registry of charts, if the options ask for one. */
  readonly registry: RegistryServer | undefined;
  /** The `spec.git` of a Source. It has credentials if the git server of this machine serves the repository. */
  gitSpec(url: string): GitSpec;
  readonly session: ApiSession;
  stop(): Promise<void>;
}

type GitSpec = Pick<GitUpstream, "url" | "credentials">;

export interface StackOptions extends MachineOptions {
  /** The folder of the git server's repositories. */
  readonly repositories: string;
  readonly clusterState?: string;
  /** The time until a Pod becomes ready. */
  readonly readyAfterMs?: number;
  /** A port that was free at an earlier start. The default takes any free port. */
  readonly clusterPort?: number;
  readonly gitPort?: number;
  /** The certificate of the git server. The default is a new one. */
  readonly gitTls?: TlsCertificate;
  /** Whether an OCI registry for charts runs, too. It is empty at each start. */
  readonly registry?: boolean;
  /** The password of the git server. The default is a new one. */
  readonly gitPassword?: string;
  /** Called for each request to the git server. */
  readonly onGitRequest?: () => void;
}

/** @throws Error that says what to install when git or an emulator is missing; no process is left running. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const certificate = options.gitTls ?? (await createTlsCertificate());
  const credentials = gitCredentials(options.gitPassword ?? newGitPassword());
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0)) await each();
  };
  try {
    const machine = await startMachine({ ...options, gitCa: certificate.cert });
    stops.unshift(() => machine.stop());
    const clusters = await startClusterHost({
      authenticator: localEksAuthenticator(machine.eks),
      guard: onlyFromHere,
      ...defined({
        stateDir: options.clusterState,
        port: options.clusterPort,
        readyAfterMs: options.readyAfterMs,
      }),
    });
    stops.push(() => clusters.stop());
    const git: GitServer = await startGitServer({
      root: options.repositories,
      ...defined({ port: options.gitPort }),
      tls: certificate,
      credentials,
      disturb() {
        options.onGitRequest?.();
        return undefined;
      },
      async onPush(repository, updates) {
        for (const update of updates) {
          if (update.before === zeroId && update.after === zeroId) continue;
          const { url: webhookUrl, secret } = machine.webhook;
          await sendGithubPush({ webhookUrl, secret, repository, cloneUrl: git.url(repository), update });
        }
      },
    });
    stops.push(() => git.stop());
    const registry = options.registry === true ? await startRegistryServer() : undefined;
    if (registry !== undefined) stops.push(() => registry.stop());
    const { origin } = new URL(git.url("any"));
    const secret = gitSecretName(options.installation);
    await machine.putSecret(secret, gitSecret(origin, credentials));
    return {
      machine,
      clusters,
      git,
      registry,
      gitCredentials: credentials,
      gitSpec: (url) => (new URL(url).origin === origin ? { url, credentials: { secret, kind: "basic" } } : { url }),
      session: openApiSession(machine.api),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Adds clusters `<ring>-<n>` and registers them. A sixth of them are canaries, a third are early. @returns their names.
 */
export async function addFleet(stack: Stack, count: number): Promise<readonly string[]> {
  const existing = new Map(stack.clusters.connections().map((connection) => [connection.name, connection]));
  const registered = fleetClusters(count).map(({ name, labels }) => ({
    connection: existing.get(name) ?? stack.clusters.addCluster(name),
    labels,
  }));
  await registerEksClusters(registered, stack.machine, stack.session);
  return registered.map(({ connection }) => connection.name);
}

/**
 * Gives a cluster of the fleet its own port, for faults of its network and certificate, and registers the new address.
 * It contacts no other cluster, because others may have faults already.
 */
export async function moveCluster(stack: Stack, name: string): Promise<void> {
  const before = stack.clusters.connections().find((connection) => connection.name === name);
  const connection = await stack.clusters.openPort(name);
  if (connection.server === before?.server) return;
  const ring = rings.find((each) => name.startsWith(`${each}-`)) ?? "broad";
  await registerEksClusters([{ connection, labels: { ring } }], stack.machine, stack.session);
}

export interface KeptFiles {
  readonly kubeconfig: string;
  readonly context: string;
}

/**
 * Writes the files that configure kubectl and `starling` for this machine. They contain tokens, so only their owner can
 * read them.
 */
export async function writeAccessFiles(stack: Stack, folder: string, namespace: string): Promise<KeptFiles> {
  const context = await writeContextFile(stack, folder, namespace);
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, stack.clusters.kubeconfig(), { mode: 0o600 });
  return { kubeconfig, context };
}

/** Writes only the file for `starling`. @returns its path. */
export async function writeContextFile(stack: Stack, folder: string, namespace: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "starling.json");
  const { endpoint, region, credentials } = stack.machine.api;
  const contexts = { local: { endpoint, region, namespace, credentials, sts: stack.machine.eks.endpoint } };
  await writeFile(path, `${JSON.stringify({ contexts, current: "local" }, null, 2)}\n`, { mode: 0o600 });
  return path;
}
