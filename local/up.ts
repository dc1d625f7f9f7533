/** Starling on this machine with a memory: what `starling local up` runs in the background. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { z } from "zod";
import { createTlsCertificate } from "#local/git/tls-certificate.ts";
import { newAccessKey } from "#local/machine.ts";
import { type MachineFile, takeFolder, writeMachine } from "#local/machine-file.ts";
import { addFleet, type Stack, startStack, writeAccessFiles } from "#local/stack.ts";
import { adoptRepository, servedName } from "#local/user-repository.ts";

export interface ServeOptions {
  /** Where everything is kept. */
  readonly folder: string;
  /** Default 3, or as many as the folder has. */
  readonly clusters?: number;
  /** Of the API; default a free one, the same at every start. */
  readonly port?: number;
  /** A git repository to serve, or to follow where it is. */
  readonly repo?: string;
  readonly signal: AbortSignal;
}

/** What has to be the same at the next start, because rows, kubeconfigs and clones name it. */
const identitySchema = z.object({
  accessKey: z.object({ accessKeyId: z.string(), secretAccessKey: z.string() }),
  gitTls: z.object({ key: z.string(), cert: z.string() }),
  clusters: z.number().int(),
  ports: z.object({ api: z.number().int(), git: z.number().int(), clusters: z.number().int() }).optional(),
  repository: z.string().optional(),
});
type Identity = z.infer<typeof identitySchema>;

const NAMESPACE = "default";
const DEFAULT_CLUSTERS = 3;
/** What a killed machine may forget of its clusters; Starling puts it back. */
const SAVE_EVERY_MS = 5000;

/**
 * Runs until the signal, and leaves no process. Rows, blobs, secrets, repositories and the clusters' objects are there at
 * the next start; messages are not, and the tick sends what they said again.
 * @throws Error naming the port that is taken, or what the folder does not fit.
 */
export async function serveLocal(options: ServeOptions): Promise<void> {
  const { folder, signal } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const giveBack = takeFolder(folder);
  let stack: Stack | undefined;
  try {
    const identity = await identityOf(options);
    stack = await start(folder, { identity, port: options.port });
    await addFleet(stack, identity.clusters);
    const repository = await serveRepository(stack, { wanted: options.repo, known: identity.repository });
    writeIdentity(folder, {
      ...identity,
      ports: portsOf(stack),
      ...(repository === undefined ? {} : { repository: repository.url }),
    });
    await stack.clusters.save();
    writeMachine(await describe(stack, { folder, identity, repository }));
    await untilAborted(signal, stack);
  } finally {
    await stack?.stop();
    giveBack();
  }
}

async function identityOf({ folder, clusters }: ServeOptions): Promise<Identity> {
  const path = join(folder, "identity.json");
  if (!existsSync(path)) {
    const gitTls = await createTlsCertificate();
    return { accessKey: newAccessKey(), gitTls, clusters: clusters ?? DEFAULT_CLUSTERS };
  }
  const known = identitySchema.parse(JSON.parse(readFileSync(path, "utf8")));
  if (clusters === undefined || clusters === known.clusters) return known;
  throw new Error(
    `--clusters is ${clusters}, and ${folder} has ${known.clusters}; leave it out, or keep others with --state DIR`,
  );
}

/** Holds keys: its owner's only. */
function writeIdentity(folder: string, identity: Identity): void {
  writeFileSync(join(folder, "identity.json"), `${JSON.stringify(identity, undefined, 2)}\n`, { mode: 0o600 });
}

interface Start {
  readonly identity: Identity;
  readonly port: number | undefined;
}

async function start(folder: string, { identity, port }: Start): Promise<Stack> {
  const { ports, accessKey, gitTls } = identity;
  const apiPort = port ?? ports?.api;
  try {
    return await startStack({
      repositories: join(folder, "repositories"),
      stateDir: join(folder, "aws"),
      clusterState: join(folder, "clusters"),
      accessKey,
      gitTls,
      ...(apiPort === undefined ? {} : { apiPort }),
      ...(ports === undefined ? {} : { gitPort: ports.git, clusterPort: ports.clusters }),
    });
  } catch (error) {
    const { code, port: taken } = error as { code?: string; port?: number };
    if (code !== "EADDRINUSE") throw error;
    const remedy =
      taken === apiPort
        ? "end it, or choose another with --port"
        : `end it: the Sources and Clusters in ${folder} name this port`;
    throw new Error(`port ${taken} of 127.0.0.1 is taken by another process; ${remedy}`, { cause: error });
  }
}

function portsOf(stack: Stack): NonNullable<Identity["ports"]> {
  const port = (url: string | undefined) => Number(new URL(url ?? "").port);
  return {
    api: port(stack.machine.api.endpoint),
    git: port(stack.git.url("any")),
    clusters: port(stack.clusters.connections()[0]?.server),
  };
}

interface Repository {
  readonly url: string;
}

interface RepositoryWish {
  readonly wanted: string | undefined;
  /** Of the last start. */
  readonly known: string | undefined;
}

/** A repository that was copied once has what was pushed to it since: it is never copied again. */
async function serveRepository({ git }: Stack, { wanted, known }: RepositoryWish): Promise<Repository | undefined> {
  if (wanted === undefined) return known === undefined ? undefined : { url: known };
  if (known !== undefined && (known === wanted || basename(known, ".git") === servedName(resolve(wanted))))
    return { url: known };
  const { url } = await adoptRepository(git, { repo: wanted });
  return { url };
}

interface Described {
  readonly folder: string;
  readonly identity: Identity;
  readonly repository: Repository | undefined;
}

async function describe(stack: Stack, { folder, identity, repository }: Described): Promise<MachineFile> {
  const files = await writeAccessFiles(stack, folder, NAMESPACE);
  const ca = join(folder, "git-ca.pem");
  writeFileSync(ca, identity.gitTls.cert);
  return {
    pid: process.pid,
    startedAt: new Date().toISOString(),
    folder,
    clusters: identity.clusters,
    endpoint: stack.machine.api.endpoint,
    kubeconfig: files.kubeconfig,
    access: files.context,
    ...(repository === undefined ? {} : { repository: { url: repository.url, ca } }),
  };
}

async function untilAborted(signal: AbortSignal, stack: Stack): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  let saving = Promise.resolve();
  const timer = setInterval(() => {
    saving = saving.then(() => stack.clusters.save()).catch((error: unknown) => console.error(error));
  }, SAVE_EVERY_MS);
  await promise;
  clearInterval(timer);
  await saving;
}
