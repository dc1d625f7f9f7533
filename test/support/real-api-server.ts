import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeEndpoint, KubeTransport } from "#shared/adapters/kube/kube-transport.ts";

const startTimeoutMs = 60_000;

/**
 * Starts etcd and kube-apiserver from a folder of binaries (envtest's) on free ports of 127.0.0.1, with RBAC and one
 * administrator's token, without controllers.
 */
export async function startRealApiServer(
  assets: string,
): Promise<{ readonly endpoint: KubeEndpoint; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "starling-apiserver-"));
  const [etcdPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const token = randomBytes(16).toString("hex");
  const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const keyFile = join(folder, "service-account.key");
  await writeFile(keyFile, key.export({ type: "pkcs1", format: "pem" }));
  await writeFile(join(folder, "tokens.csv"), `${token},admin,admin,system:masters\n`);
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const processes = [
    run(join(assets, "etcd"), {
      "data-dir": join(folder, "etcd"),
      "listen-client-urls": etcdUrl,
      "advertise-client-urls": etcdUrl,
      "listen-peer-urls": peerUrl,
      "initial-advertise-peer-urls": peerUrl,
      "initial-cluster": `default=${peerUrl}`,
    }),
    run(join(assets, "kube-apiserver"), {
      "etcd-servers": etcdUrl,
      "cert-dir": join(folder, "certs"),
      "bind-address": "127.0.0.1",
      "secure-port": String(apiPort),
      "token-auth-file": join(folder, "tokens.csv"),
      "service-account-issuer": "https://127.0.0.1",
      "service-account-key-file": keyFile,
      "service-account-signing-key-file": keyFile,
      "service-cluster-ip-range": "10.0.0.0/24",
      "authorization-mode": "RBAC",
      "disable-admission-plugins": "ServiceAccount",
    }),
  ];
  async function stop(): Promise<void> {
    for (const process of [...processes].reverse()) await end(process);
    await rm(folder, { recursive: true, force: true });
  }
  try {
    const endpoint = await ready({ folder, apiPort, token });
    return { endpoint, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function run(binary: string, options: Readonly<Record<string, string>>): ChildProcess {
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  return spawn(binary, flags, { stdio: "ignore" });
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null) return;
  const exited = new Promise((resolve) => process.once("exit", resolve));
  process.kill("SIGTERM");
  await Promise.race([exited, sleep(5_000)]);
  process.kill("SIGKILL");
}

async function ready(server: {
  readonly folder: string;
  readonly apiPort: number;
  readonly token: string;
}): Promise<KubeEndpoint> {
  const certificate = join(server.folder, "certs", "apiserver.crt");
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    await sleep(200);
    if (!existsSync(certificate)) continue;
    const endpoint: KubeEndpoint = {
      server: `https://127.0.0.1:${server.apiPort}`,
      caData: await readFile(certificate, "utf8"),
      credentials: { token: async () => server.token },
    };
    if (await answers(endpoint)) return endpoint;
  }
  throw new Error(`kube-apiserver was not ready within ${startTimeoutMs} ms`);
}

/** kube-system comes a moment after the server calls itself ready. */
async function answers(endpoint: KubeEndpoint): Promise<boolean> {
  const transport = new KubeTransport(endpoint);
  try {
    const request = {
      method: "GET",
      path: "/api/v1/namespaces/kube-system",
      timeoutMs: 2_000,
      maxBodyBytes: 1e6,
    } as const;
    return (await transport.send(request)).status === 200;
  } catch {
    return false;
  } finally {
    transport.close();
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
