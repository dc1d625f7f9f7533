import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { locateKubectl } from "#shared/adapters/kubectl-binary.ts";
import { listens, portsOf, processesWith } from "#test/support/processes.ts";

const run = promisify(execFile);
const starling = fileURLToPath(new URL("../../cli/starling.mjs", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "starling-restart-"));
const state = join(home, "kept state");
const repository = join(home, "shop");
const env = {
  PATH: process.env.PATH ?? "",
  HOME: home,
  GIT_AUTHOR_NAME: "ana",
  GIT_AUTHOR_EMAIL: "ana@example.com",
  GIT_COMMITTER_NAME: "ana",
  GIT_COMMITTER_EMAIL: "ana@example.com",
};

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function cli(...args: readonly string[]): Promise<Ran> {
  try {
    const { stdout, stderr } = await run(process.execPath, [starling, ...args], { cwd: home, env });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

const up = (...args: readonly string[]) => cli("local", "up", "--state", state, ...args);
const down = () => cli("local", "down", "--state", state);

async function status(): Promise<{ pid: number; endpoint: string; repository: { url: string; ca: string } }> {
  return JSON.parse((await cli("local", "status", "--state", state, "-o", "json")).out);
}

async function commit(value: string): Promise<string> {
  const settings = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: "${value}"}\n`;
  writeFileSync(join(repository, "settings.yaml"), settings);
  await run("git", ["add", "."], { cwd: repository, env });
  await run("git", ["commit", "-qm", value], { cwd: repository, env });
  return (await run("git", ["rev-parse", "HEAD"], { cwd: repository, env })).stdout.trim();
}

async function push(): Promise<void> {
  const { url, ca } = (await status()).repository;
  await run("git", ["push", "-q", url, "main"], { cwd: repository, env: { ...env, GIT_SSL_CAINFO: ca } });
}

/** What the ConfigMap says in every cluster. */
async function values(): Promise<readonly string[]> {
  const kubectl = await locateKubectl("");
  const read = (context: string) =>
    run(kubectl, [
      ...["--kubeconfig", join(state, "kubeconfig"), "--context", context],
      ...["get", "configmap", "settings", "-o", "jsonpath={.data.value}"],
    ]);
  return Promise.all(["canary-1", "early-1", "broad-1"].map(async (context) => (await read(context)).stdout));
}

async function untilInSync(revision: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const { out } = await cli("local", "status", "--state", state);
      expect(out).toContain(`syncgroup:   default/shop  Complete  3/3  main@sha1:${revision}`);
    },
    { timeout: 90_000, interval: 500 },
  );
}

beforeAll(async () => {
  mkdirSync(repository);
  await run("git", ["init", "-q", "-b", "main", "."], { cwd: repository, env });
  writeFileSync(
    join(home, "fleet.yaml"),
    `apiVersion: starling.dev/v1alpha1
kind: SyncGroup
metadata: {name: shop}
spec:
  clusters: {all: true}
  templates: [{name: web, source: shop, apply: {defaultNamespace: default, interval: 10s}}]
  rollout: {maxConcurrent: 3}
`,
  );
});

afterAll(async () => {
  await down();
  rmSync(home, { recursive: true, force: true });
});

describe("the machine in the background", () => {
  it("is at its next start what it was, and goes on from there", async () => {
    const first = await commit("one");
    expect(await up("--clusters", "3", "--repo", "shop")).toMatchObject({ code: 0 });
    const before = await status();
    const source = `{apiVersion: starling.dev/v1alpha1, kind: Source, metadata: {name: shop}, spec: {git: {url: "${before.repository.url}"}}}`;
    writeFileSync(join(home, "source.yaml"), source);
    expect(await cli("apply", "-f", "source.yaml", "-f", "fleet.yaml")).toMatchObject({ code: 0 });
    await untilInSync(first);

    const ports = portsOf(processesWith(state).map((line) => Number.parseInt(line, 10)));
    expect(ports.length).toBeGreaterThanOrEqual(4);
    expect(await down()).toMatchObject({ code: 0, out: "local is down\n" });
    expect(processesWith(state)).toEqual([]);
    for (const port of ports) expect(await listens(port), `port ${port}`).toBe(false);

    expect(await up()).toMatchObject({ code: 0 });
    const after = await status();
    expect(after).toMatchObject({ endpoint: before.endpoint, repository: before.repository });
    await untilInSync(first);
    expect(await values()).toEqual(["one", "one", "one"]);
    const rollouts = JSON.parse((await cli("rollout", "list", "shop", "-o", "json")).out);
    expect(rollouts.items).toHaveLength(1);

    const second = await commit("two");
    await push();
    await untilInSync(second);
    expect(await values()).toEqual(["two", "two", "two"]);
  });

  it("starts again after it was killed, and says so of a process that is gone", async () => {
    const { pid } = await status();
    // What the clusters hold is written every few seconds.
    await vi.waitFor(
      () => expect(readFileSync(join(state, "clusters", "broad-1.cluster.json"), "utf8")).toContain('"two"'),
      { timeout: 20_000, interval: 200 },
    );
    process.kill(pid, "SIGKILL");
    await vi.waitFor(() => expect(processesWith(state)).toEqual([]), { timeout: 20_000 });
    expect(await cli("local", "status", "--state", state)).toMatchObject({ code: 1, out: "local is down\n" });
    expect(await up()).toMatchObject({ code: 0 });
    expect(await values()).toEqual(["two", "two", "two"]);
    const third = await commit("three");
    await push();
    await untilInSync(third);
    expect(await values()).toEqual(["three", "three", "three"]);
  });

  it("names what is in its way", async () => {
    expect((await up()).err).toContain("it is up already");
    expect(await up("--clusters", "4")).toMatchObject({ code: 2, err: expect.stringContaining("has 3 embedded") });
    const { endpoint } = await status();
    await down();
    const port = Number(new URL(endpoint).port);
    const other = createServer().listen(port, "127.0.0.1");
    try {
      const taken = await up();
      expect(taken.code).toBe(3);
      expect(taken.err).toContain(`port ${port} of 127.0.0.1 is taken by another process`);
      expect(processesWith(state)).toEqual([]);
    } finally {
      other.close();
    }
    expect(await up("--clusters", "4")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--clusters 4 is asked for"),
    });
  });
});
