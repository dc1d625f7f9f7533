/**
 * The workers of a zone in a network of their own, made of Linux network namespaces. They reach the emulators of AWS
 * and the private addresses of the zone, and nothing else. Nothing of the machine's own network changes, and the
 * namespaces end with their processes.
 */
import { spawnSync } from "node:child_process";
import { connect, type Socket } from "node:net";
import type { LambdaContext, LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { PacedClock } from "#local/base/paced-clock.ts";
import { type FunctionCode, functionCode } from "#local/machine/function-code.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { SqsEvent } from "#shared/lambda/sqs-handler.ts";
import { joinSockets } from "#test/support/join-sockets.ts";
import type { GateQuestion } from "#test/support/zone-networks/gate-program.ts";
import { type NamespacedProcess, startNamespaced } from "#test/support/zone-networks/namespaced-process.ts";
import { privatePort } from "#test/support/zone-networks/private-cluster.ts";
import type { Wiring, WorkerQuestion } from "#test/support/zone-networks/worker-program.ts";

const sendTimeEveryMs = 50;

/** Why this machine cannot give zones networks of their own; undefined when it can. */
export function lackOfNamespaces(): string | undefined {
  if (process.platform !== "linux") return "network namespaces need Linux";
  const tried = "ip link add name a type veth peer name b && ip addr add 10.0.0.1/24 dev a && nsenter --version";
  const { status, error, stderr } = spawnSync("unshare", ["-Urn", "--", "sh", "-c", tried], { encoding: "utf8" });
  if (status === 0) return undefined;
  const why = error?.message ?? stderr.trim().split("\n")[0];
  return `unshare, nsenter and ip (iproute2) cannot make network namespaces here: ${why}`;
}

export interface ZoneNetworkOptions {
  readonly clock: PacedClock;
  /** The ports on 127.0.0.1 of the API servers, by their addresses in the private network of the zone. */
  readonly servers: Readonly<Record<string, number>>;
  /** The loopback address from which connections of this zone come to the API servers, such as `127.0.1.1`. */
  readonly source: string;
}

export interface ZoneNetwork {
  /** The connections that reached this address of the zone's private network, since the start. */
  connections(address: string): number;
  /** The clusters of the messages that the workers of the zone got, in their order. */
  readonly worked: readonly string[];
  /** Draws the cable out of the private network, or puts it back: every packet is lost meanwhile. */
  plug(plugged: boolean): Promise<void>;
  /** Kills the workers; the next message starts others. */
  kill(): Promise<void>;
  /** @param sandbox - a number of its own for each sandbox. */
  handler(sandbox: number, variables: Wiring["variables"], aws: AwsClients): LambdaHandler;
  stop(): Promise<void>;
}

const gateProgram = new URL("./gate-program.ts", import.meta.url).href;
const workerProgram = new URL("./worker-program.ts", import.meta.url).href;

export async function startZoneNetwork({ clock, servers, source }: ZoneNetworkOptions): Promise<ZoneNetwork> {
  const counts = new Map<string, number>();
  const sockets = new Set<Socket>();
  const worked: string[] = [];
  let aws: ReadonlySet<number> = new Set();
  let isPlugged = true;
  let stopped = false;
  /** Both ends carry the same bytes, so that TLS is between the worker and the API server. */
  const join = (near: Socket, far: Socket) => joinSockets(near, far, sockets);
  const gate = startNamespaced({
    enter: ["unshare", "--user", "--map-root-user", "--net"],
    program: gateProgram,
    onConnection({ address }, near) {
      counts.set(address, (counts.get(address) ?? 0) + 1);
      const port = servers[address];
      if (port === undefined) near.destroy();
      else join(near, connect({ host: "127.0.0.1", port, localAddress: source }));
    },
  });
  const askGate = (question: GateQuestion) => gate.ask<void>(question);
  await askGate({ kind: "listen", port: privatePort });
  let worker: Promise<NamespacedProcess> | undefined;

  async function startWorker(): Promise<NamespacedProcess> {
    const started = startNamespaced({
      enter: ["nsenter", "--target", `${gate.pid}`, "--user", "--preserve-credentials", "unshare", "--net"],
      program: workerProgram,
      onConnection({ port }, near) {
        if (aws.has(port)) join(near, connect({ host: "127.0.0.1", port }));
        else near.destroy();
      },
    });
    await sendTime(started);
    await started.ask({ kind: "open", rate: clock.rate } satisfies WorkerQuestion);
    const addresses = Object.keys(servers);
    if (addresses.length > 0) await askGate({ kind: "connect", pid: started.pid, addresses, plugged: isPlugged });
    return started;
  }
  function sendTime(to: NamespacedProcess): Promise<void> {
    return to.ask<void>({ kind: "time", now: clock.now().getTime() } satisfies WorkerQuestion);
  }
  const sending = setInterval(() => {
    worker?.then(sendTime).catch(() => {});
  }, sendTimeEveryMs);

  return {
    worked,
    connections: (address) => counts.get(address) ?? 0,
    async plug(plugged) {
      isPlugged = plugged;
      await askGate({ kind: "plug", plugged });
    },
    async kill() {
      const killed = worker;
      worker = undefined;
      await (await killed)?.kill();
    },
    handler(sandbox, variables, clients) {
      const wiring = wiringOf(variables, clients);
      return async (event: SqsEvent, context: LambdaContext) => {
        if (stopped) throw new Error("the network of the zone has ended");
        const given = await wiring;
        aws = new Set(Object.values(given.endpoints).map((endpoint) => Number(new URL(endpoint).port)));
        for (const { body } of event.Records) worked.push((JSON.parse(body) as { readonly cluster: string }).cluster);
        worker ??= startWorker();
        const { getRemainingTimeInMillis, ...plain } = context;
        const remainingMs = getRemainingTimeInMillis();
        return (await worker).ask({
          kind: "invoke",
          ...{ sandbox, wiring: given, event, context: plain, remainingMs },
        } satisfies WorkerQuestion);
      };
    },
    async stop() {
      stopped = true;
      clearInterval(sending);
      await (await worker?.catch(() => undefined))?.kill();
      await gate.kill();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The code of the machine's functions, whose workers run in the networks of their zones. */
export function codeIn(networks: ReadonlyMap<string, ZoneNetwork>): (folder: string) => FunctionCode {
  let sandboxes = 0;
  return (folder) => {
    const code = functionCode(folder);
    if (folder !== "apply") return code;
    return {
      ...code,
      wire(variables, aws) {
        sandboxes += 1;
        const network = networks.get(variables.STARLING_ZONE ?? "");
        if (network === undefined) throw new Error(`the zone ${variables.STARLING_ZONE} has no network`);
        return network.handler(sandboxes, variables, aws);
      },
    };
  };
}

async function wiringOf(variables: Wiring["variables"], aws: AwsClients): Promise<Wiring> {
  const { accessKeyId, secretAccessKey, sessionToken = "" } = await aws.sqs.config.credentials();
  const credentials = { accessKeyId, secretAccessKey, sessionToken };
  const clients = { ...aws, eks: aws.eks({ region: localRegion, credentials }) };
  const names = ["dynamo", "sqs", "s3", "secrets", "sts", "eks"] as const;
  const endpoints = await Promise.all(
    names.map(async (name) => {
      const { hostname, port } = (await clients[name].config.endpoint?.()) ?? {};
      return [name, `http://${hostname}:${port}`];
    }),
  );
  return { variables, region: localRegion, credentials, endpoints: Object.fromEntries(endpoints) };
}
