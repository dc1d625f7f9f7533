import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ClusterConnection, ClusterFaults } from "@starling/embedded-apiserver";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { findKubeAssets } from "#local/clusters/kube-assets.ts";
import type { AwsClientOptions } from "#shared/lambda/aws-clients.ts";
import type { TargetName } from "#test/bench/bench.ts";
import type { ProcessUse } from "#test/bench/process-use.ts";

/** The endpoints of the emulators, as `awsClients` expects them, and the resources from the templates. */
export interface AwsAddresses extends AwsClientOptions {
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly table: string;
  readonly bucket: string;
  /** The environment of the apply function. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface ClusterAddress {
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  readonly token: string;
  /** The uid of kube-system. */
  readonly uid: string;
}

export interface Started<T> {
  readonly address: T;
  stop(): Promise<void>;
}

export interface StartedTarget extends Started<ClusterAddress> {
  /** Sets the faults of an embedded cluster; undefined for a real one. */
  readonly setFaults?: (faults: ClusterFaults) => Promise<void>;
}

/** Starts emulators with the resources of the stacks. */
export function startAwsProcess(): Promise<Started<AwsAddresses>> {
  return startChild<AwsAddresses>("aws");
}

export interface StartedFleet extends Started<readonly ClusterConnection[]> {
  /** The use of its process since the last call. */
  used(): Promise<ProcessUse>;
}

/** Starts this number of empty clusters in one process, with controllers. */
export async function startFleetProcess(clusters: number): Promise<StartedFleet> {
  const { ask, ...started } = await startChild<readonly ClusterConnection[]>("fleet", [String(clusters)]);
  return { ...started, used: async () => (await ask({})) as ProcessUse };
}

/** Starts one empty cluster without controllers. @throws Error when the programs of a real one are missing. */
export async function startTarget(name: TargetName): Promise<StartedTarget> {
  if (name === "embedded") {
    const { ask, ...started } = await startChild<ClusterAddress>("cluster");
    return {
      ...started,
      async setFaults(faults) {
        await ask(faults);
      },
    };
  }
  const assets = await findAssets();
  if (assets === undefined) {
    throw new Error(
      "no kube-apiserver: put etcd and kube-apiserver into /usr/local/kubebuilder/bin, point KUBEBUILDER_ASSETS to them, or run with --target embedded",
    );
  }
  const { stop, ...address } = await startKubeApiServer({ assets });
  return { address, stop };
}

/** A real API server if its programs exist. */
export async function bestTarget(): Promise<TargetName> {
  return (await findAssets()) === undefined ? "embedded" : "kube-apiserver";
}

function findAssets() {
  return findKubeAssets(process.env.KUBEBUILDER_ASSETS);
}

/** Serves the bare repositories of a folder over HTTP. The address is the origin. */
export function startGitProcess(root: string): Promise<Started<string>> {
  return startChild<string>("git", [root]);
}

export type ChildRole = "aws" | "cluster" | "fleet" | "git";

interface StartedChild<T> extends Started<T> {
  /** Sends a message and waits for its answer. */
  ask(message: object): Promise<unknown>;
}

async function startChild<T>(role: ChildRole, more: readonly string[] = []): Promise<StartedChild<T>> {
  const child = fork(fileURLToPath(new URL("child-server.ts", import.meta.url)), [role, ...more], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  const [address] = await Promise.race([
    once(child, "message"),
    exited.then(([code]) => Promise.reject(new Error(`the process of the ${role} emulator ended with ${code}`))),
  ]);
  return {
    address: address as T,
    async ask(message) {
      const done = once(child, "message");
      child.send(message);
      const [answer] = await done;
      return answer;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
