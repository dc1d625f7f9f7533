import { type Authenticator, startClusterHost } from "@starling/embedded-apiserver";
import { applyTo } from "@starling/embedded-apiserver/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { leftOutOnRealServers, leftOutSteps } from "#test/contract/local/apiserver/left-out-steps.ts";
import { Replay, type ReplayServer } from "#test/contract/local/apiserver/replayer.ts";
import { readVectorFile, type VectorStep } from "#test/contract/local/apiserver/vector-file.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { borrowServer } from "#test/support/server-pool/borrow-server.ts";
import { serverUsers } from "#test/support/server-pool/server-users.ts";

/** Replays the recorded requests to a real kube-apiserver 1.36.2. Every step is sent, because later steps need it. */
type Controllers = "on" | "off";

interface ReplayTarget {
  readonly name: string;
  readonly leftOut: typeof leftOutSteps;
  start(controllers: Controllers): Promise<ReplayServer & { stop(): Promise<void> }>;
}

/** The recording leaves out what the certificate of alice adds under `extra`. */
const authenticator: Authenticator = async (token) =>
  token === "alice" ? { username: "alice", groups: ["dev"], extra: {} } : undefined;

const strangers = { "bad-token": "not-a-token", anonymous: null };

const embedded: ReplayTarget = {
  name: "the embedded API server",
  leftOut: leftOutSteps,
  async start(controllers) {
    const host = await startClusterHost({ authenticator, controllers, readyAfterMs: 3_600_000 });
    return { connection: host.addCluster("vectors"), tokens: { ...strangers, alice: "alice" }, stop: host.stop };
  },
};

function real(assets: KubeAssets): ReplayTarget {
  return {
    name: "kube-apiserver",
    leftOut: leftOutOnRealServers,
    async start(controllers) {
      const server =
        controllers === "off"
          ? await borrowServer(assets)
          : await startKubeApiServer({ assets, controllers, users: serverUsers });
      const alice = server.tokens.alice ?? null;
      return { connection: server, tokens: { ...strangers, alice }, stop: server.stop };
    },
  };
}

function controllersOf(file: string): Controllers {
  return file.startsWith("21-") ? "on" : "off";
}

function filesOn(target: ReplayTarget): readonly string[] {
  const canControl = target === embedded || kubeAssets?.kubeControllerManager !== undefined;
  return Object.keys(leftOutSteps).filter((file) => canControl || controllersOf(file) === "off");
}

function title(step: VectorStep, index: number, reason: string | undefined): string {
  const outcome = reason === undefined ? "is answered as recorded" : `is sent and not compared (${reason})`;
  return `step ${index} ${outcome}: ${step.name}`;
}

/** A step of this file asks for this address, which a real server must not have given to another Service by chance. */
const takenAddresses: Readonly<Record<string, string>> = { "16-immutable-fields.json": "10.0.0.251" };

async function takeAddress({ connection }: ReplayServer, clusterIP: string): Promise<void> {
  const spec = { clusterIP, ports: [{ port: 80 }] };
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "taken", namespace: "default" }, spec };
  await applyTo(connection, "/api/v1/namespaces/default/services/taken", service);
}

const targets = kubeAssets === undefined ? [embedded] : [embedded, real(kubeAssets)];

describe.each(targets)("recorded answers on $name", (target) => {
  describe.each(filesOn(target))("%s", (file) => {
    const controllers = controllersOf(file);
    let server: ReplayServer & { stop(): Promise<void> };
    let replay: Replay;
    beforeAll(async () => {
      server = await target.start(controllers);
      const address = takenAddresses[file];
      if (address !== undefined && target !== embedded) await takeAddress(server, address);
      // The order of a real controller's writes varies.
      replay = new Replay(file, server, target !== embedded && controllers === "on" ? "any" : "strict");
    });
    afterAll(() => server.stop());

    for (const [index, step] of readVectorFile(file).entries()) {
      if (step.request === undefined) continue;
      const reason = target.leftOut[file]?.[index];
      test(title(step, index, reason), async () => {
        const problems = await replay.play(reason === undefined ? step : { ...step, poll: false });
        if (reason === undefined) expect(problems, problems.join("\n")).toEqual([]);
      });
    }
  });
});
