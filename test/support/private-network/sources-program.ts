/**
 * An installation that reads Sources, inside a network namespace: the network of the zone in which `resolve` runs. Its
 * parent gives the network's addresses and names. Everything here is on the loopback interface of the namespace.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createTlsCertificate, type TlsCertificate } from "#local/base/tls-certificate.ts";
import { startGitServer } from "#local/git/git-server.ts";
import { openApiSession } from "#local/machine/api-session.ts";
import { startMachine } from "#local/machine/machine.ts";
import { defined } from "#shared/base/defined.ts";
import type { ApiList, SourceObject } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";

export interface AskedNetwork {
  /** The addresses of the network that lead to the git server, by the names that its resolver knows. */
  readonly hosts: Readonly<Record<string, string>>;
  /** The Sources, each with its host. */
  readonly sources: Readonly<Record<string, string>>;
  readonly settings: { readonly zones: string; readonly resolveZone?: string; readonly gitAllow?: string };
}

export interface ReadSource {
  readonly ready: string;
  readonly message: string;
  /** Files of the artifact. */
  readonly files: number | undefined;
}

export interface ReadNetwork {
  readonly sources: Readonly<Record<string, ReadSource>>;
  /** The names of hosts in the requests that arrived at each address. */
  readonly requests: Readonly<Record<string, readonly string[]>>;
  readonly zones: ApiList<ZoneObject>;
}

const namespace = "shop";
const patienceMs = 60_000;

async function read({ hosts, sources, settings }: AskedNetwork): Promise<ReadNetwork> {
  const folder = mkdtempSync(join(tmpdir(), "starling-private-"));
  const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    enterNetwork(folder, hosts);
    const tls = await createTlsCertificate(Object.values(sources));
    const git = await startGitServer({ root: join(folder, "git") });
    stops.unshift(() => git.stop());
    await git.createRepository("platform/fleet", { "deploy/web.yaml": "kind: ConfigMap\n" });
    const requests: Record<string, string[]> = {};
    for (const address of new Set(Object.values(hosts))) {
      requests[address] = [];
      const front = await startFront({ address, to: git.url("platform/fleet"), tls, requests: requests[address] });
      stops.unshift(() => front.close());
    }
    const machine = await startMachine({ ...defined(settings), faults: quiet, tickEveryMs: 250, gitCa: tls.cert });
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
    return { sources: found, requests, zones: await session.call("GET", "/v1/zones") };

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

/** The git server at another address, over HTTPS. */
async function startFront({ address, to, tls, requests }: FrontOptions): Promise<Server> {
  const { host } = new URL(to);
  const front = createServer(tls, (asked, answer) => {
    const { method, url = "", headers } = asked;
    requests.push(headers.host ?? "");
    const passed = request(new URL(url, to), { method, headers: { ...headers, host } }, (answered) => {
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
  /** URL of a repository of the git server. */
  readonly to: string;
  readonly tls: TlsCertificate;
  readonly requests: string[];
}

/** The namespace begins with no address and with the names of the machine. */
function enterNetwork(folder: string, hosts: AskedNetwork["hosts"]): void {
  const run = (command: string, ...words: readonly string[]) => execFileSync(command, words, { stdio: "pipe" });
  run("ip", "link", "set", "lo", "up");
  for (const address of new Set(Object.values(hosts))) run("ip", "addr", "add", `${address}/32`, "dev", "lo");
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
