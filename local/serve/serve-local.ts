/** Starling on this machine with persistent state: the process that `starling local up` runs in the background. */

import { join } from "node:path";
import * as z from "zod";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { createFaultControl } from "#local/faults/fault-control.ts";
import { newGitPassword, writeGitFiles } from "#local/git/git-access.ts";
import { adoptRepository, isSameRepository } from "#local/git/user-repository.ts";
import { newAccessKey, newInstallationId } from "#local/machine/machine.ts";
import { moveCluster, type Stack, startStack, writeAccessFiles, writeContextFile } from "#local/machine/stack.ts";
import { requireFreePorts, withLastingPorts } from "#local/serve/choose-ports.ts";
import { type ControlServer, startControlServer } from "#local/serve/control-server.ts";
import { type KeptClusters, keepClusters, requireClusters } from "#local/serve/kept-clusters.ts";
import { type MachineFile, takeFolder, writeMachine } from "#local/serve/machine-file.ts";
import { serveMachinePages } from "#local/serve/machine-pages.ts";
import { prepareFolder } from "#local/serve/prepare-folder.ts";
import {
  clusterChoiceSchema,
  clustersOf,
  defaultClusters,
  type Identity,
  portsSchema,
  readIdentity,
  writeIdentity,
} from "#local/serve/state-folder.ts";
import { defined } from "#shared/base/defined.ts";
import type { PageServer } from "#shared/pages/serve-pages.ts";

/** The options of a start. For an option that is undefined, the folder's setting or a default counts. */
export const servePlanSchema = z.strictObject({
  clusters: clusterChoiceSchema.optional(),
  /** The default takes free ports, the same at every start. */
  ports: portsSchema.partial(),
  /** A git repository to serve, or a URL to follow. */
  repo: z.string().optional(),
});
export type ServePlan = z.infer<typeof servePlanSchema>;

export interface ServeOptions {
  /** The folder of all state. */
  readonly folder: string;
  readonly plan: ServePlan;
  readonly signal: AbortSignal;
}

const namespace = "default";
const seed = 1;
/** A killed machine loses at most this much of its clusters' state, and Starling applies it again. */
const saveEveryMs = 5000;

/**
 * Runs until the signal and leaves no process running. Rows, blobs, secrets, repositories and the clusters' objects
 * survive a restart. Messages and faults do not. The tick sends the lost messages again. @throws LocalFailure that says
 * what is missing, taken or wrong, and what to do.
 */
export async function serveLocal({ folder, plan, signal }: ServeOptions): Promise<void> {
  // No other user may read files of this process or its children.
  process.umask(0o077);
  await prepareFolder(folder);
  const giveBack = takeFolder(folder);
  const stops: (() => Promise<void>)[] = [];
  try {
    const identity = await identityOf(folder, plan);
    await requireFreePorts(identity.ports);
    await requireClusters(identity.clusters);
    const stack = await startStack(stackOptions(folder, identity));
    stops.unshift(() => stack.stop());
    const kept = await keepClusters(stack, { choice: identity.clusters, folder, port: identity.ports.clusters });
    // The functions that call the clusters stop before the clusters.
    stops.push(() => kept.stop());
    const repository = await serveRepository(stack, { desired: plan.repo, known: identity.repository });
    writeIdentity(folder, {
      ...identity,
      ports: portsOf(stack, kept),
      ...(repository === undefined ? {} : { repository: repository.url }),
    });
    const control = await startControlServer(faultControl(stack, folder), stack.machine.alarms);
    stops.unshift(() => control.stop());
    const pages = await serveMachinePages(stack.machine.api);
    stops.unshift(() => pages.close());
    writeMachine(await describe(stack, { folder, identity, repository, kept, control, pages }));
    await untilAborted(signal, stack);
  } finally {
    for (const stop of stops) await stop();
    giveBack();
  }
}

async function identityOf(folder: string, plan: ServePlan): Promise<Identity> {
  const known = readIdentity(folder);
  const clusters = clustersOf(folder, { known: known?.clusters, desired: plan.clusters });
  // A folder of an older version keeps its old installation id, because objects in its clusters name it.
  const installationId = known === undefined ? newInstallationId() : known.installationId;
  return {
    accessKey: known?.accessKey ?? newAccessKey(),
    gitTls: known?.gitTls ?? (await createTlsCertificate()),
    gitPassword: known?.gitPassword ?? newGitPassword(),
    ...defined({ installationId }),
    clusters: clusters ?? defaultClusters,
    ports: await withLastingPorts({ ...known?.ports, ...plan.ports }),
    ...(known?.repository === undefined ? {} : { repository: known.repository }),
  };
}

function stackOptions(
  folder: string,
  { accessKey, gitTls, gitPassword, installationId, clusters, ports }: Identity,
): Parameters<typeof startStack>[0] {
  return {
    repositories: join(folder, "repositories"),
    stateDir: join(folder, "aws"),
    clusterState: join(folder, "clusters"),
    accessKey,
    gitTls,
    ...defined({ gitPassword, installationId }),
    seed: seed,
    faults: quiet,
    database: "pipe",
    ...defined({ apiPort: ports.api, gitPort: ports.git }),
    ...(ports.clusters === undefined || clusters.kind !== "embedded" ? {} : { clusterPort: ports.clusters }),
  };
}

function portsOf(stack: Stack, { port }: KeptClusters): MachineFile["ports"] {
  return {
    api: Number(new URL(stack.machine.api.endpoint).port),
    git: Number(new URL(stack.git.url("any")).port),
    ...defined({ clusters: port }),
  };
}

function faultControl(stack: Stack, folder: string) {
  return createFaultControl({
    proxy: stack.machine.proxy,
    clusters: stack.clusters,
    faults: quiet,
    seed: seed,
    async openPort(cluster) {
      await moveCluster(stack, cluster);
      await writeAccessFiles(stack, folder, namespace);
    },
  });
}

interface Repository {
  readonly url: string;
}

interface RepositoryWish {
  readonly desired: string | undefined;
  /** The repository of the last start. */
  readonly known: string | undefined;
}

/** A repository is copied only once, because it may have received pushes since then. */
async function serveRepository({ git }: Stack, { desired, known }: RepositoryWish): Promise<Repository | undefined> {
  if (known !== undefined && (desired === undefined || isSameRepository(known, desired)))
    return { url: servedAt(git, known) };
  if (desired === undefined) return undefined;
  const { url } = await adoptRepository(git, { repo: desired });
  return { url };
}

/** The git server may have another port than at the last start. A remote URL stays the same. */
function servedAt(git: Stack["git"], known: string): string {
  const { hostname, pathname } = new URL(known);
  return hostname === "127.0.0.1" ? git.url(pathname.slice(1).replace(/\.git$/, "")) : known;
}

interface Described {
  readonly folder: string;
  readonly identity: Identity;
  readonly repository: Repository | undefined;
  readonly kept: KeptClusters;
  readonly control: ControlServer;
  readonly pages: PageServer;
}

async function describe(stack: Stack, described: Described): Promise<MachineFile> {
  const { folder, identity, repository, kept, control, pages } = described;
  const gitFiles = await writeGitFiles(folder, {
    origin: new URL(stack.git.url("any")).origin,
    credentials: stack.gitCredentials,
    authority: identity.gitTls.cert,
  });
  return {
    pid: process.pid,
    startedAt: new Date().toISOString(),
    folder,
    clusters: kept.count,
    kept: identity.clusters,
    endpoint: stack.machine.api.endpoint,
    ports: portsOf(stack, kept),
    kubeconfig: kept.kubeconfig,
    control: { url: control.url, token: control.token },
    pages: pages.url,
    access: await writeContextFile(stack, folder, namespace),
    ...(repository === undefined ? {} : { repository: { ...stack.gitSpec(repository.url), ...gitFiles } }),
  };
}

async function untilAborted(signal: AbortSignal, stack: Stack): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  let saving = Promise.resolve();
  const timer = setInterval(() => {
    saving = saving.then(() => stack.clusters.save()).catch((error: unknown) => console.error(error));
  }, saveEveryMs);
  await promise;
  clearInterval(timer);
  await saving;
}
