/** The clusters that a machine in the background keeps in sync, of the chosen kind. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { LocalFailure } from "#local/base/local-failure.ts";
import { type KubeApiServer, startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { defaultKubeAssetsFolder, type KubeAssets } from "#local/clusters/kube-assets.ts";
import { clusterNameOf, type KubeconfigCluster } from "#local/clusters/kubeconfig-file.ts";
import { locateKubeAssets } from "#local/clusters/locate-kube-assets.ts";
import { createToken, keepTokenFresh, makeAccount, ownCluster, serverVersion } from "#local/clusters/own-cluster.ts";
import { addFleet, type Stack } from "#local/machine/stack.ts";
import { envtestName } from "#local/serve/expected-clusters.ts";
import type { ClusterChoice } from "#local/serve/state-folder.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";

export interface KeptClusters {
  readonly count: number;
  /** The port of their API servers; undefined when Starling did not start them. */
  readonly port: number | undefined;
  /** A kubeconfig for kubectl: one that the machine wrote, or the user's. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

export interface KeepOptions {
  readonly choice: ClusterChoice;
  /** The state folder. Clusters that it contains are used again. */
  readonly folder: string;
  readonly port: number | undefined;
}

const checkTokenEveryMs = 30_000;

/**
 * Checks that everything the clusters need exists, before any server starts. @throws LocalFailure that says where it
 * searched, and what to do.
 */
export async function requireClusters(choice: ClusterChoice): Promise<void> {
  if (choice.kind === "kubeconfig") await serverVersion((await ownCluster(choice)).own);
  if (choice.kind === "envtest") await requireAssets();
}

/** Starts or finds the clusters and registers them. @throws LocalFailure when that fails. */
export async function keepClusters(stack: Stack, { choice, folder, port }: KeepOptions): Promise<KeptClusters> {
  switch (choice.kind) {
    case "embedded":
      return keepEmbedded(stack, { count: choice.count, folder });
    case "envtest":
      return keepApiServer(stack, { folder, port });
    case "kubeconfig":
      return keepOwn(stack, choice);
  }
}

async function keepEmbedded(stack: Stack, { count, folder }: { readonly count: number; readonly folder: string }) {
  const kubeconfig = join(folder, "kubeconfig");
  await addFleet(stack, count);
  await stack.clusters.save();
  await writeKubeconfig(kubeconfig, stack.clusters.kubeconfig());
  const port = Number(new URL(stack.clusters.connections()[0]?.server ?? "").port);
  return { count, port, kubeconfig, async stop() {} };
}

/** The folder holds etcd's data. A start with the same folder has the same objects, authority, tokens and uid. */
async function keepApiServer(
  stack: Stack,
  { folder, port }: { readonly folder: string; readonly port: number | undefined },
): Promise<KeptClusters> {
  const assets = await requireAssets();
  const server = await startKubeApiServer({
    assets,
    folder: join(folder, "kube-apiserver"),
    controllers: assets.kubeControllerManager === undefined ? "off" : "on",
    ...defined({ port }),
  });
  try {
    await register(stack, { name: envtestName, cluster: server, token: server.token });
    const kubeconfig = join(folder, "kubeconfig");
    await writeKubeconfig(kubeconfig, adminKubeconfig(server));
    return { count: 1, port: Number(new URL(server.server).port), kubeconfig, stop: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function keepOwn(stack: Stack, choice: ClusterChoice & { readonly kind: "kubeconfig" }): Promise<KeptClusters> {
  const { cluster, own } = await ownCluster(choice);
  const name = clusterNameOf(choice.context);
  await makeAccount(own);
  const current = await createToken(own);
  await register(stack, { name, cluster, token: current.token });
  const renewal = keepTokenFresh({
    current,
    create: (signal) => createToken(own, signal),
    store: (token) => stack.machine.putSecret(tokenSecret(name), clusterSecret({ ...cluster, token })),
    now: Date.now,
    checkEveryMs: checkTokenEveryMs,
    onProblem: (error) => console.error(`cannot renew the token for ${choice.context}: ${errorMessage(error)}`),
  });
  return {
    count: 1,
    port: undefined,
    kubeconfig: choice.path,
    stop: () => renewal.stop(),
  };
}

async function requireAssets(): Promise<KubeAssets> {
  const next = "KUBEBUILDER_ASSETS=DIR starling local up --envtest   (setup-envtest use -p path prints a DIR)";
  let found: KubeAssets | undefined;
  try {
    found = await locateKubeAssets();
  } catch (cause) {
    throw new LocalFailure(errorMessage(cause), { exit: "unknown", next, cause });
  }
  if (found !== undefined) return found;
  const message = `found no etcd and kube-apiserver in ${defaultKubeAssetsFolder}, and KUBEBUILDER_ASSETS is not set; set STARLING_ENVTEST_DOWNLOAD=1 to download them`;
  throw new LocalFailure(message, { exit: "unknown", next });
}

interface Registration {
  readonly name: string;
  readonly cluster: KubeconfigCluster;
  readonly token: string;
}

/** Registers a cluster as an operator does: the token in a secret, the rest in a Cluster. */
async function register({ machine, session }: Stack, { name, cluster, token }: Registration): Promise<void> {
  const { server, caData, tlsServerName } = cluster;
  await machine.putSecret(tokenSecret(name), clusterSecret({ ...cluster, token }));
  const endpoint = {
    server,
    token: { secret: tokenSecret(name) },
    ...defined({ caData, tlsServerName }),
  };
  await session.apply([{ apiVersion: ourApiVersion, kind: "Cluster", metadata: { name }, spec: { endpoint } }]);
}

function tokenSecret(cluster: string): string {
  return `starling/clusters/${cluster}`;
}

function adminKubeconfig({ server, caData, token }: KubeApiServer): string {
  const [name, user] = [envtestName, "admin"];
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": caData } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
    "current-context": name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** The file contains a token, so only its owner can read it. */
async function writeKubeconfig(path: string, config: string): Promise<void> {
  await writeFile(path, config, { mode: 0o600 });
}
