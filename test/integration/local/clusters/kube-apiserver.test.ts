import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { clusterRequest, objectOf } from "@starling/embedded-apiserver/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type KubeApiServer, startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { findKubeAssets, type KubeAssets, readKubeAssets } from "#local/clusters/kube-assets.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { listeningPorts } from "#test/support/listening-ports.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-kube-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function fakeAssets(scripts: Readonly<Record<string, string>>): Promise<KubeAssets> {
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
  const assets = await readKubeAssets(folder);
  if (assets === undefined) throw new Error("the test wrote no programs");
  return assets;
}

const lines = async (file: string) => (await readFile(file, "utf8")).trim().split("\n");

describe("the folder of the programs", () => {
  test("a folder in KUBEBUILDER_ASSETS without the programs is an error", async () => {
    await expect(findKubeAssets(folder)).rejects.toThrow(
      `KUBEBUILDER_ASSETS is ${folder}, which does not contain executable etcd`,
    );
    await writeFile(join(folder, "etcd"), "");
    await expect(findKubeAssets(folder)).rejects.toThrow("does not contain executable");
  });

  test("the programs in a given folder are used before all others", async () => {
    const assets = await fakeAssets({ etcd: "", "kube-apiserver": "" });
    expect(await findKubeAssets(folder)).toEqual(assets);
    expect(assets).toEqual({ folder, etcd: join(folder, "etcd"), kubeApiServer: join(folder, "kube-apiserver") });
  });
});

describe("a server that does not start", () => {
  test("the error for a server that does not start has the last output of its program", async () => {
    const assets = await fakeAssets({
      etcd: "exec sleep 60",
      "kube-apiserver": 'echo "no such flag: --x" >&2; exit 3',
    });
    await expect(startKubeApiServer({ assets })).rejects.toThrow(/kube-apiserver ended with exit code 3: no such flag/);
  });

  test("a server whose port is taken is started on other ports, four times at most", async () => {
    const tries = join(folder, "tries");
    const taken = `echo "$@" >> ${tries}; echo "listen tcp: bind: address already in use" >&2; exit 1`;
    const assets = await fakeAssets({ etcd: taken, "kube-apiserver": "exec sleep 60" });
    await expect(startKubeApiServer({ assets })).rejects.toThrow("address already in use");
    const tried = await lines(tries);
    expect(tried).toHaveLength(4);
    expect(new Set(tried.map((flags) => /listen-client-urls=(\S+)/.exec(flags)?.[1])).size).toBe(4);
  });

  test("a server with controllers is refused if the program of the controllers is missing", async () => {
    const assets = await fakeAssets({ etcd: "", "kube-apiserver": "" });
    await expect(startKubeApiServer({ assets, controllers: "on" })).rejects.toThrow("no kube-controller-manager in");
  });
});

async function read(server: KubeApiServer, path: string, token = server.token) {
  return clusterRequest(server, { path, token });
}

/** Requests all keys from etcd. @throws Error when it refuses. */
function everyKeyOf(origin: string): Promise<string> {
  const start = origin.startsWith("https:") ? httpsRequest : httpRequest;
  const options = { method: "POST", rejectUnauthorized: false, agent: false };
  return new Promise((resolve, reject) => {
    const asking = start(`${origin}/v3/kv/range`, options, (answer) => {
      const body = text(answer);
      if (answer.statusCode === 200) body.then(resolve, reject);
      else reject(new Error(`${answer.statusCode}`));
    });
    asking.on("error", reject);
    asking.end('{"key":"AA==","range_end":"AA==","limit":1}');
  });
}

if (kubeAssets === undefined) console.log("no kube-apiserver is installed: its kept folder is not tested");

describe.skipIf(kubeAssets === undefined)("a kept folder of kube-apiserver", () => {
  const assets = kubeAssets as KubeAssets;
  const users = [{ name: "alice", groups: ["dev", "ops"] }];

  test("the next server in a kept folder has the same objects, identity, certificate and tokens", async () => {
    const path = "/api/v1/namespaces/default/configmaps";
    const kept = join(folder, "kept");
    const first = await startKubeApiServer({ assets, folder: kept, users });
    try {
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kept" } };
      expect((await clusterRequest(first, { method: "POST", path, body })).status).toBe(201);
    } finally {
      await first.stop();
    }
    expect(first.exit()).toMatch(/ended/);
    const again = await startKubeApiServer({ assets, folder: kept, users });
    try {
      const { uid, caData, tokens, version } = first;
      expect(again).toMatchObject({ uid, caData, tokens, version });
      expect((await read(again, `${path}/kept`)).status).toBe(200);
      const alice = await read(again, path, tokens.alice);
      expect(objectOf(alice).message).toContain('User "alice" cannot list resource "configmaps"');
    } finally {
      await again.stop();
    }
  });

  test.skipIf(!existsSync("/proc/net/tcp"))("etcd answers only its API server", async () => {
    const before = listeningPorts(process.pid);
    const server = await startKubeApiServer({ assets });
    try {
      const api = Number(new URL(server.server).port);
      const others = listeningPorts(process.pid).filter((port) => port !== api && !before.includes(port));
      expect(others).toHaveLength(2);
      for (const port of others) {
        for (const origin of [`http://127.0.0.1:${port}`, `https://127.0.0.1:${port}`]) {
          await expect(everyKeyOf(origin), origin).rejects.toThrow();
        }
      }
    } finally {
      await server.stop();
    }
  });

  test("a requested port that is taken is an error, and no folder remains", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    vi.stubEnv("TMPDIR", folder);
    try {
      const { port } = other.address() as AddressInfo;
      await expect(startKubeApiServer({ assets, port })).rejects.toThrow("address already in use");
      expect(await readdir(folder)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      other.close();
    }
  });
});
