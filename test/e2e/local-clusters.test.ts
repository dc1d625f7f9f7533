import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { findKubeAssets } from "#local/envtest/kube-assets.ts";
import { locateKubectl } from "#shared/adapters/kubectl-binary.ts";
import { listens, portsOf, processesWith } from "#test/support/processes.ts";

const run = promisify(execFile);
const starling = fileURLToPath(new URL("../../cli/starling.mjs", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "starling-kinds-"));
const repository = join(home, "shop");
const env = {
  PATH: process.env.PATH ?? "",
  HOME: home,
  TMPDIR: join(home, "tmp"),
  GIT_AUTHOR_NAME: "ana",
  GIT_AUTHOR_EMAIL: "ana@example.com",
  GIT_COMMITTER_NAME: "ana",
  GIT_COMMITTER_EMAIL: "ana@example.com",
  ...(process.env.KUBEBUILDER_ASSETS === undefined ? {} : { KUBEBUILDER_ASSETS: process.env.KUBEBUILDER_ASSETS }),
};
const assets = await findKubeAssets(process.env.KUBEBUILDER_ASSETS);

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function cli(line: string): Promise<Ran> {
  try {
    const { stdout, stderr } = await run(process.execPath, [starling, ...line.split(" ")], { cwd: home, env });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

interface Foreground {
  readonly child: ChildProcess;
  readonly out: () => string;
  /** Resolves with its exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
}

/** `starling local up …` as somebody at a terminal runs it. */
function start(line: string): Foreground {
  const child = spawn(process.execPath, [starling, ...line.split(" ")], { cwd: home, env, stdio: "pipe" });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
  }
  return { child, out: () => out, ended: once(child, "exit").then(([code, signal]) => code ?? signal) };
}

async function until(process: Foreground, text: string): Promise<void> {
  await vi.waitFor(() => expect(process.out()).toContain(text), { timeout: 90_000, interval: 20 });
}

const isGone = (state: string) =>
  vi.waitFor(() => expect(processesWith(state)).toEqual([]), { timeout: 30_000, interval: 50 });

/** Follows the repository that this machine serves, on all of its clusters. */
async function follow(state: string): Promise<void> {
  const { out } = await cli(`local status --state ${state} -o json`);
  const { url } = (JSON.parse(out) as { repository: { url: string } }).repository;
  const documents = [
    { kind: "Source", metadata: { name: "shop" }, spec: { git: { url } } },
    {
      kind: "SyncGroup",
      metadata: { name: "shop" },
      spec: {
        clusters: { all: true },
        templates: [{ name: "web", source: "shop", apply: { defaultNamespace: "default" } }],
      },
    },
  ];
  const text = documents.map((document) => JSON.stringify({ apiVersion: "starling.dev/v1alpha1", ...document }));
  writeFileSync(join(home, "fleet.yaml"), text.join("\n---\n"));
  expect(await cli("apply -f fleet.yaml")).toMatchObject({ code: 0 });
}

async function untilInSync(state: string): Promise<string> {
  let out = "";
  await vi.waitFor(
    async () => {
      out = (await cli(`local status --state ${state}`)).out;
      expect(out).toContain("syncgroup:   default/shop  Complete  1/1  main@sha1:");
    },
    { timeout: 90_000, interval: 500 },
  );
  return out;
}

async function kubectl(kubeconfig: string, line: string): Promise<string> {
  const { stdout } = await run(await locateKubectl(env.PATH), ["--kubeconfig", kubeconfig, ...line.split(" ")], {
    env,
  });
  return stdout;
}

beforeAll(async () => {
  for (const folder of [repository, env.TMPDIR]) mkdirSync(folder);
  const settings = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: "one"}\n`;
  writeFileSync(join(repository, "settings.yaml"), settings);
  await run("git", ["init", "-q", "-b", "main", "."], { cwd: repository, env });
  await run("git", ["add", "."], { cwd: repository, env });
  await run("git", ["commit", "-qm", "one"], { cwd: repository, env });
});

afterAll(async () => {
  for (const state of ["theirs", "real", "mine", "early", "killed"]) await cli(`local down --state ${state}`);
  rmSync(home, { recursive: true, force: true });
});

describe("a cluster of one's own", () => {
  it("is kept in sync with an account that is made there, until Ctrl-C, which leaves nothing here", async () => {
    expect(await cli("local up --state theirs --clusters 1")).toMatchObject({ code: 0 });
    const theirs = join(home, "theirs", "kubeconfig");

    const mine = start(
      "local up --state mine --kubeconfig theirs/kubeconfig --context canary-1 --yes --foreground --repo shop",
    );
    await until(mine, "it runs until Ctrl-C");
    await follow("mine");
    expect(await untilInSync("mine")).toContain("the cluster of context canary-1: 1 Ready");
    expect(await kubectl(theirs, "get configmap settings -o jsonpath={.data.value}")).toBe("one");
    expect(await kubectl(theirs, "get clusterrolebinding starling-local -o jsonpath={.roleRef.name}")).toBe(
      "cluster-admin",
    );
    expect(await cli("local kubeconfig --state mine")).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining(`next: export KUBECONFIG=${theirs}`),
    });

    const ports = portsOf(processesWith(join(home, "mine")).map((line) => Number.parseInt(line, 10)));
    expect(ports.length).toBeGreaterThanOrEqual(4);
    mine.child.kill("SIGINT");
    expect(await mine.ended).toBe(130);
    expect(mine.out()).toContain("interrupted");
    await isGone(join(home, "mine"));
    for (const port of ports) expect(await listens(port), `port ${port}`).toBe(false);
    expect((await cli("context list")).err).toContain("no context");

    // The account and what was applied are theirs to remove; the next start asks nobody again.
    expect(await kubectl(theirs, "get configmap settings -o name")).toBe("configmap/settings\n");
    const again = await cli("local up --state mine");
    expect(again).toMatchObject({ code: 0, err: expect.stringContaining("account in context canary-1 of") });
    await untilInSync("mine");
    const { code, err } = await cli("local down --state mine");
    expect(code).toBe(0);
    const removal = /^ {2}kubectl (.* delete clusterrolebinding\/starling-local .*)$/m.exec(err)?.[1] ?? "";
    await kubectl(theirs, removal);
    expect(await kubectl(theirs, "get clusterrolebinding starling-local --ignore-not-found")).toBe("");
    expect(await cli("local down --state theirs")).toMatchObject({ code: 0 });
  });
});

describe("whoever started it goes away", () => {
  it.each([
    ["early", "Ctrl-C while it starts", "SIGINT", "starting Starling", "local up --state early --clusters 1", 130],
    [
      "killed",
      "kill -9 of the one in front",
      "SIGKILL",
      "until Ctrl-C",
      "local up --foreground --state killed",
      "SIGKILL",
    ],
  ] as const)("%s: %s leaves nothing", async (state, _what, signal, text, line, ended) => {
    // Without the shim that looks for Node 24: the signal is for the command itself.
    const process = start(line);
    await until(process, text);
    process.child.kill(signal);
    expect(await process.ended).toBe(ended);
    await isGone(join(home, state));
    expect(existsSync(join(home, state, "pid"))).toBe(false);
  });
});

describe.skipIf(assets === undefined)("a real kube-apiserver", () => {
  it("is there again at the next start, with what was applied", async () => {
    expect(await cli("local up --state real --envtest --repo shop")).toMatchObject({ code: 0 });
    const kubeconfig = join(home, "real", "kubeconfig");
    await follow("real");
    await untilInSync("real");
    const uid = await kubectl(kubeconfig, "get configmap settings -o jsonpath={.metadata.uid}");
    const before = readFileSync(kubeconfig, "utf8");

    expect(await cli("local down --state real")).toMatchObject({ code: 0 });
    await isGone(join(home, "real"));
    expect(await cli("local up --state real")).toMatchObject({ code: 0 });
    expect(readFileSync(kubeconfig, "utf8")).toBe(before);
    expect(await kubectl(kubeconfig, "get configmap settings -o jsonpath={.metadata.uid}")).toBe(uid);
    expect((await cli("local kubeconfig --state real")).out).toBe(before);
    expect(await cli("local down --state real")).toMatchObject({ code: 0 });
  });
});
