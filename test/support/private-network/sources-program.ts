/**
 * An installation that reads Sources and the keys of issuers, inside a network namespace: the network of the zone in which
 * `resolve` and `webhook` run. Its parent gives the network's addresses and names. Everything here is on the loopback
 * interface of the namespace, mostly at addresses of other networks.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createTlsCertificate, type TlsCertificate } from "#local/base/tls-certificate.ts";
import { startGitServer } from "#local/git/git-server.ts";
import { openApiSession } from "#local/machine/api-session.ts";
import { type FunctionCode, functionCode } from "#local/machine/function-code.ts";
import { startMachine } from "#local/machine/machine.ts";
import { loopback } from "#local/machine/plan-overrides.ts";
import { defined } from "#shared/base/defined.ts";
import type { ApiList, ReceiverObject, SourceObject } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { discoveryPath, keysPath, startTokenIssuer } from "#test/support/token-issuer.ts";

export interface AskedNetwork {
  /** The addresses of the network, by the names that its resolver knows. They lead to the git server and to all issuers. */
  readonly hosts: Readonly<Record<string, string>>;
  /** The Sources, each with its host. */
  readonly sources: Readonly<Record<string, string>>;
  /** The hosts of issuers of tokens, by the names of Receivers, which get one delivery each. */
  readonly issuers: Readonly<Record<string, IssuerHosts>>;
  readonly settings: { readonly zones: string; readonly resolveZone?: string; readonly gitAllow?: string };
}

export interface IssuerHosts {
  /** As in a URL. */
  readonly issuer: string;
  /** The host of its keys, when that is another one. */
  readonly keys?: string;
}

export interface Delivered {
  /** The status of the answer to the sender. */
  readonly status: number;
  /** The reason of the last refusal that the Receiver shows. */
  readonly refused: string | undefined;
}

export interface ReadSource {
  readonly ready: string;
  readonly message: string;
  /** Files of the artifact. */
  readonly files: number | undefined;
}

export interface ReadNetwork {
  readonly sources: Readonly<Record<string, ReadSource>>;
  readonly receivers: Readonly<Record<string, Delivered>>;
  /** The names of hosts in the requests that arrived at each address. */
  readonly requests: Readonly<Record<string, readonly string[]>>;
  readonly zones: ApiList<ZoneObject>;
}

const namespace = "shop";
const patienceMs = 60_000;

async function read({ hosts, sources, issuers, settings }: AskedNetwork): Promise<ReadNetwork> {
  const folder = mkdtempSync(join(tmpdir(), "starling-private-"));
  const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    enterNetwork(folder, hosts);
    const names = [...Object.values(sources), ...Object.values(issuers).flatMap(hostsOf)];
    const tls = await createTlsCertificate([...new Set(names)]);
    const git = await startGitServer({ root: join(folder, "git") });
    stops.unshift(() => git.stop());
    await git.createRepository("platform/fleet", { "deploy/web.yaml": "kind: ConfigMap\n" });
    const issuer = await startTokenIssuer(new Date());
    stops.unshift(() => issuer.stop());
    const requests: Record<string, string[]> = {};
    for (const address of new Set(Object.values(hosts))) {
      requests[address] = [];
      const to = (path: string) => (path.startsWith("/platform/") ? git.url("platform/fleet") : issuer.url);
      const front = await startFront({ address, to, tls, requests: requests[address] });
      stops.unshift(() => front.close());
    }
    const machine = await startMachine({
      ...defined(settings),
      faults: quiet,
      tickEveryMs: 250,
      gitCa: tls.cert,
      code: codeAsDeployed,
    });
    stops.unshift(() => machine.stop());
    const session = openApiSession(machine.api);
    await session.apply(
      Object.entries(sources).map(([name, host]) => ({
        apiVersion: "starling.dev/v1alpha1",
        kind: "Source",
        metadata: { name, namespace },
        spec: { git: { url: `https://${host}/platform/fleet.git`, ref: { branch: "main" } }, paths: ["deploy"] },
      })),
    );
    const found: Record<string, ReadSource> = {};
    for (const name of Object.keys(sources)) found[name] = await settled(name);
    const receivers: Record<string, Delivered> = {};
    for (const [name, of] of Object.entries(issuers)) receivers[name] = await delivered(name, of);
    return { sources: found, receivers, requests, zones: await session.call("GET", "/v1/zones") };

    async function delivered(name: string, { issuer: host, keys = host }: IssuerHosts): Promise<Delivered> {
      const iss = `https://${host}`;
      const [source = ""] = Object.keys(sources);
      await session.apply([
        {
          apiVersion: "starling.dev/v1alpha1",
          kind: "Receiver",
          metadata: { name, namespace },
          spec: {
            provider: "generic-oidc",
            sources: [source],
            oidc: { issuer: iss, audience: "starling", claims: { sub: "ci" } },
          },
        },
      ]);
      const path = `/v1/namespaces/${namespace}/receivers/${name}`;
      const { url } = (await session.call<ReceiverObject>("GET", path)).status;
      issuer.instead.set(discoveryPath, {
        body: JSON.stringify({ issuer: iss, jwks_uri: `https://${keys}${keysPath}` }),
      });
      const authorization = `Bearer ${await issuer.sign({ iss, sub: "ci" })}`;
      const { status } = await fetch(new URL(url, machine.api.endpoint), {
        method: "POST",
        headers: { authorization },
      });
      return { status, refused: (await session.call<ReceiverObject>("GET", path)).status.lastRefusal?.reason };
    }

    async function settled(name: string): Promise<ReadSource> {
      for (const deadline = Date.now() + patienceMs; ; await sleep(100)) {
        const { status } = await session.call<SourceObject>("GET", `/v1/namespaces/${namespace}/sources/${name}`);
        const ready = status.conditions.find(({ type }) => type === "Ready");
        if (ready !== undefined && ready.status !== "Unknown")
          return { ready: ready.status, message: ready.message, files: status.artifact?.files };
        if (Date.now() > deadline) throw new Error(`Source ${name} is not settled: ${JSON.stringify(status)}`);
      }
    }
  } finally {
    for (const stop of stops) await stop();
  }
}

function hostsOf({ issuer, keys = issuer }: IssuerHosts): readonly string[] {
  return [issuer, keys].map((host) => host.replace(/^\[|\]$/g, ""));
}

/** Without the permission for hosts on the loopback interface that functions on a machine of one's own have. */
function codeAsDeployed(folder: string): FunctionCode {
  const code = functionCode(folder);
  return {
    ...code,
    wire({ STARLING_GIT_ALLOW: allowed, ...variables }, ...rest) {
      const deployed = allowed?.replace(new RegExp(`,?${loopback}$`), "");
      return code.wire({ ...variables, ...defined({ STARLING_GIT_ALLOW: deployed }) }, ...rest);
    },
  };
}

/** Another server at another address, over HTTPS. */
async function startFront({ address, to, tls, requests }: FrontOptions): Promise<Server> {
  const front = createServer(tls, (asked, answer) => {
    const { method, url = "", headers } = asked;
    requests.push(headers.host ?? "");
    const there = new URL(url, to(url));
    const { host } = there;
    const passed = request(there, { method, headers: { ...headers, host } }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((resolve) => front.listen(443, address, resolve));
  return front;
}

interface FrontOptions {
  readonly address: string;
  /** A URL of the server that has this path. */
  readonly to: (path: string) => string;
  readonly tls: TlsCertificate;
  readonly requests: string[];
}

/** Whether every machine has the address. */
function isOwn(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

/** The namespace begins with no address and with the names of the machine. */
function enterNetwork(folder: string, hosts: AskedNetwork["hosts"]): void {
  const run = (command: string, ...words: readonly string[]) => execFileSync(command, words, { stdio: "pipe" });
  run("ip", "link", "set", "lo", "up");
  for (const address of new Set(Object.values(hosts)))
    if (!isOwn(address)) run("ip", "addr", "add", `${address}/${isIPv6(address) ? 128 : 32}`, "dev", "lo");
  const names = Object.entries(hosts).map(([name, address]) => `${address} ${name}`);
  const files = { hosts: ["127.0.0.1 localhost", ...names].join("\n"), "nsswitch.conf": "hosts: files" };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), `${text}\n`);
    run("mount", "--bind", join(folder, name), `/etc/${name}`);
  }
}

process.once("message", async (asked: AskedNetwork) => {
  const answer = await read(asked).then(
    (found) => ({ found }),
    (error: Error) => ({ failure: error.stack ?? error.message }),
  );
  process.send?.(answer, () => process.exit());
});
