import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "#local/base/free-port.ts";
import { startTethered, type TetheredProcess } from "#local/base/tethered-process.ts";
import { createMutualTlsCertificate } from "#local/base/tls-certificate.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { parseJson } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

export interface KubeUser {
  readonly name: string;
  readonly groups: readonly string[];
}

export interface KubeApiServerOptions {
  readonly assets: KubeAssets;
  /**
   * The folder for etcd's data, certificates and tokens; a later start uses it again. By default a temporary folder is
   * removed with the server.
   */
  readonly folder?: string;
  /** The default takes a free port. */
  readonly port?: number;
  /** "on" needs `assets.kubeControllerManager`, and it turns on the ServiceAccount admission plugin. */
  readonly controllers?: "on" | "off";
  /**
   * Users with a token, besides `admin` in system:masters. RBAC decides what they may do, which is nothing at first.
   */
  readonly users?: readonly KubeUser[];
  /** The http URL on this machine that receives a TokenReview for every other token, as EKS calls its authenticator. */
  readonly tokenWebhook?: string;
}

export interface KubeApiServer {
  /** `https://127.0.0.1:PORT`. */
  readonly server: string;
  /** The certificate authority: PEM in base64, as a kubeconfig holds it. */
  readonly caData: string;
  /** The token of the administrator. */
  readonly token: string;
  /** Tokens by user name, including the administrator's. */
  readonly tokens: Readonly<Record<string, string>>;
  /** The uid of kube-system. */
  readonly uid: string;
  /** For example `v1.36.2`. */
  readonly version: string;
  readonly controllers: "on" | "off";
  /** Undefined while the server runs; afterwards the reason why it ended and its last output. */
  exit(): string | undefined;
  stop(): Promise<void>;
}

const startTimeoutMs = 90_000;
const portAttempts = 4;
const administrator: KubeUser = { name: "admin", groups: ["system:masters"] };

/**
 * Starts etcd, kube-apiserver and optionally kube-controller-manager on 127.0.0.1, with RBAC and static tokens, as
 * envtest does. They end with this process, however it ends. @throws Error with the last output of the program that did
 * not start.
 */
export async function startKubeApiServer(options: KubeApiServerOptions): Promise<KubeApiServer> {
  const { controllers = "off", assets } = options;
  if (controllers === "on" && assets.kubeControllerManager === undefined) {
    throw new Error(
      `no kube-controller-manager in ${assets.folder}: envtest's archives have none; put one there or start without controllers`,
    );
  }
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "starling-kube-apiserver-")));
  const remove = async () => {
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
  };
  try {
    const files = {
      ...(await prepareFiles(folder, [administrator, ...(options.users ?? [])])),
      ...(options.tokenWebhook === undefined ? {} : { tokenWebhook: await writeWebhook(folder, options.tokenWebhook) }),
    };
    for (let attempt = 1; ; attempt += 1) {
      const plan: Plan = { options, files, controllers, apiPort: options.port ?? (await freePort()) };
      const started = await start(plan, remove);
      if (started.outcome === "ready") return started.server;
      if (attempt === portAttempts || options.port !== undefined || !portWasTaken(started.reason))
        throw new Error(started.reason);
    }
  } catch (error) {
    await remove();
    throw error;
  }
}

function portWasTaken(reason: string): boolean {
  return reason.includes("address already in use");
}

interface Files {
  readonly folder: string;
  readonly etcdData: string;
  /** The certificate that etcd and its only client show each other. */
  readonly etcdTls: { readonly cert: string; readonly key: string };
  readonly certificates: string;
  readonly serviceAccountKey: string;
  readonly tokenFile: string;
  readonly tokens: Readonly<Record<string, string>>;
  /** The path of a kubeconfig. */
  readonly tokenWebhook?: string;
}

/** Writes the files that the programs read. Files in a kept folder are used again. */
async function prepareFiles(folder: string, users: readonly KubeUser[]): Promise<Files> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const tokenFile = join(folder, "tokens.csv");
  const known = new Map<string, string>();
  if (existsSync(tokenFile)) {
    for (const line of (await readFile(tokenFile, "utf8")).split("\n")) {
      const [token, name] = line.split(",");
      if (token !== undefined && name !== undefined) known.set(name, token);
    }
  }
  const tokens: Record<string, string> = {};
  for (const { name } of users) tokens[name] = known.get(name) ?? randomBytes(16).toString("hex");
  const lines = users.map(({ name, groups }) => `${tokens[name]},${name},${name},"${groups.join(",")}"\n`);
  await writeFile(tokenFile, lines.join(""), { mode: 0o600 });
  const serviceAccountKey = join(folder, "service-account.key");
  if (!existsSync(serviceAccountKey)) {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    await writeFile(serviceAccountKey, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  }
  const [etcdData, certificates] = [join(folder, "etcd"), join(folder, "certs")];
  const etcdTls = { cert: join(folder, "etcd.crt"), key: join(folder, "etcd.key") };
  const { cert, key } = await createMutualTlsCertificate();
  await Promise.all([writeFile(etcdTls.cert, cert, { mode: 0o600 }), writeFile(etcdTls.key, key, { mode: 0o600 })]);
  return { folder, etcdData, etcdTls, certificates, serviceAccountKey, tokenFile, tokens };
}

async function writeWebhook(folder: string, server: string): Promise<string> {
  const file = join(folder, "token-webhook.json");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "webhook",
    contexts: [{ name: "webhook", context: { cluster: "webhook", user: "server" } }],
    clusters: [{ name: "webhook", cluster: { server } }],
    users: [{ name: "server", user: {} }],
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

interface Plan {
  readonly options: KubeApiServerOptions;
  readonly files: Files;
  readonly controllers: "on" | "off";
  readonly apiPort: number;
}

type Started =
  | { readonly outcome: "ready"; readonly server: KubeApiServer }
  | { readonly outcome: "failed"; readonly reason: string };

async function start(plan: Plan, remove: () => Promise<void>): Promise<Started> {
  const { assets } = plan.options;
  const { files, apiPort, controllers } = plan;
  const processes: TetheredProcess[] = [];
  const stopAll = async () => {
    // kube-apiserver needs more than a second to finish, which only a kept folder requires.
    const end = plan.options.folder === undefined ? "kill" : "stop";
    for (const process of [...processes].reverse()) await process[end]();
  };
  const exit = () => processes.map((process) => process.exit()).find((reason) => reason !== undefined);
  const waitFor = <T>(failure: string, attempt: () => Promise<T | undefined>) =>
    waitUntil({ exit, output: () => processes.map((process) => process.output()).join("\n"), failure }, attempt);
  const run = (command: string, flags: Readonly<Record<string, string>>) => {
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    processes.push(startTethered({ command, args }));
  };
  try {
    const [etcdPort, peerPort] = [await freePort(), await freePort()];
    run(assets.etcd, etcdFlags(plan, { etcdPort, peerPort }));
    run(assets.kubeApiServer, apiServerFlags(plan, etcdPort));
    const { tokens } = files;
    const token = tokens[administrator.name] ?? "";
    const address = `https://127.0.0.1:${apiPort}`;
    const caData = await waitFor("wrote no certificate", () => readCertificate(files));
    const transport = new KubeTransport({ server: address, caData, credentials: { token: async () => token } });
    try {
      const read = (path: string, field: readonly string[]) => readField(transport, path, field);
      await waitFor("did not become ready", () => isReady(transport));
      const version = await waitFor("reported no version", () => read("/version", ["gitVersion"]));
      // kube-system appears a moment after the server reports ready.
      const systemNamespace = "/api/v1/namespaces/kube-system";
      const uid = await waitFor("created no kube-system", () => read(systemNamespace, ["metadata", "uid"]));
      if (controllers === "on" && assets.kubeControllerManager !== undefined) {
        run(assets.kubeControllerManager, await controllerManagerFlags(plan, { address, caData, token }));
        const account = "/api/v1/namespaces/default/serviceaccounts/default";
        await waitFor("created no service account", () => read(account, ["metadata", "uid"]));
      }
      const server: KubeApiServer = {
        ...{ server: address, caData, token, tokens, uid, version, controllers, exit },
        async stop() {
          await stopAll();
          await remove();
        },
      };
      return { outcome: "ready", server };
    } finally {
      transport.close();
    }
  } catch (error) {
    await stopAll();
    return { outcome: "failed", reason: errorMessage(error) };
  }
}

function etcdFlags(
  { files, options }: Plan,
  ports: { readonly etcdPort: number; readonly peerPort: number },
): Readonly<Record<string, string>> {
  const clients = `https://127.0.0.1:${ports.etcdPort}`;
  const peers = `https://127.0.0.1:${ports.peerPort}`;
  const { cert, key } = files.etcdTls;
  return {
    "data-dir": files.etcdData,
    "listen-client-urls": clients,
    "advertise-client-urls": clients,
    "listen-peer-urls": peers,
    "initial-advertise-peer-urls": peers,
    "initial-cluster": `default=${peers}`,
    // Every user of the machine can connect, and etcd has no users. So it accepts only clients with the key.
    "cert-file": cert,
    "key-file": key,
    "trusted-ca-file": cert,
    "client-cert-auth": "true",
    "peer-cert-file": cert,
    "peer-key-file": key,
    "peer-trusted-ca-file": cert,
    "peer-client-cert-auth": "true",
    "log-level": "error",
    ...(options.folder === undefined ? { "unsafe-no-fsync": "true" } : {}),
  };
}

function apiServerFlags({ files, apiPort, controllers }: Plan, etcdPort: number): Readonly<Record<string, string>> {
  return {
    "etcd-servers": `https://127.0.0.1:${etcdPort}`,
    "etcd-cafile": files.etcdTls.cert,
    "etcd-certfile": files.etcdTls.cert,
    "etcd-keyfile": files.etcdTls.key,
    "cert-dir": files.certificates,
    "bind-address": "127.0.0.1",
    "secure-port": String(apiPort),
    "token-auth-file": files.tokenFile,
    "service-account-issuer": "https://127.0.0.1",
    "service-account-key-file": files.serviceAccountKey,
    "service-account-signing-key-file": files.serviceAccountKey,
    "service-cluster-ip-range": "10.0.0.0/24",
    "authorization-mode": "RBAC",
    ...(files.tokenWebhook === undefined ? {} : webhookFlags(files.tokenWebhook)),
    // Without controllers no namespace has a default ServiceAccount, and the plugin would refuse every Pod.
    ...(controllers === "on" ? {} : { "disable-admission-plugins": "ServiceAccount" }),
  };
}

function webhookFlags(file: string): Readonly<Record<string, string>> {
  return {
    "authentication-token-webhook-config-file": file,
    "authentication-token-webhook-version": "v1",
    // The server caches refusals, too. A short time lets a user in soon after access was granted.
    "authentication-token-webhook-cache-ttl": "1s",
  };
}

interface Access {
  readonly address: string;
  readonly caData: string;
  readonly token: string;
}

async function controllerManagerFlags(
  { files }: Plan,
  { address, caData, token }: Access,
): Promise<Readonly<Record<string, string>>> {
  const kubeconfig = join(files.folder, "controller-manager.json");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "admin",
    contexts: [{ name: "admin", context: { cluster: "own", user: "admin" } }],
    clusters: [{ name: "own", cluster: { server: address, "certificate-authority-data": caData } }],
    users: [{ name: "admin", user: { token } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config), { mode: 0o600 });
  return {
    kubeconfig,
    "leader-elect": "false",
    "secure-port": "0",
    "service-account-private-key-file": files.serviceAccountKey,
    "root-ca-file": join(files.certificates, "apiserver.crt"),
  };
}

/** The certificate is self-signed, so it is also the authority. */
async function readCertificate({ certificates }: Files): Promise<string | undefined> {
  const path = join(certificates, "apiserver.crt");
  if (!existsSync(path)) return undefined;
  const pem = await readFile(path);
  return pem.includes("END CERTIFICATE") ? pem.toString("base64") : undefined;
}

async function isReady(transport: KubeTransport): Promise<true | undefined> {
  const answer = await send(transport, "/readyz");
  return answer?.status === 200 ? true : undefined;
}

async function readField(
  transport: KubeTransport,
  path: string,
  field: readonly string[],
): Promise<string | undefined> {
  const answer = await send(transport, path);
  return answer?.status === 200 ? stringAt(parseJson(answer.text), ...field) : undefined;
}

async function send(transport: KubeTransport, path: string) {
  return transport.send({ method: "GET", path, timeoutMs: 2_000, maxBodyBytes: 1e6 }).catch(() => undefined);
}

const pollMs = 100;

interface Patience {
  readonly exit: () => string | undefined;
  readonly output: () => string;
  readonly failure: string;
}

async function waitUntil<T>({ exit, output, failure }: Patience, attempt: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    const ended = exit();
    if (ended !== undefined) throw new Error(ended);
    const result = await attempt();
    if (result !== undefined) return result;
    await sleep(pollMs);
  }
  throw new Error(`kube-apiserver ${failure} within ${startTimeoutMs / 1000} s; its last output: ${output().trim()}`);
}
