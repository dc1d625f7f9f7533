import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { clusterReader, decodeManifests, differences } from "#test/support/cluster-reader.ts";
import { startDemo } from "#test/support/demo-process.ts";
import { foreignRepository } from "#test/support/foreign-repository.ts";
import { listens, portsOf, processesWith } from "#test/support/processes.ts";
import type { StartedProcess } from "#test/support/started-process.ts";

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), "starling-demo-test-"));
const tmp = join(home, "tmp");
const repository = join(home, "books of ours");
const running = new Set<StartedProcess>();
let kubectl = "";
let head = "";
/** A demo that runs until its deadline, beside the other tests. */
let neverStarts: StartedProcess | undefined;

async function git(...args: readonly string[]): Promise<string> {
  const identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];
  return (await run("git", [...identity, ...args], { cwd: repository })).stdout.trim();
}

function demo(args: readonly string[], options: { readonly path?: string } = {}): StartedProcess {
  const started = startDemo(args, { tmp, ...options });
  running.add(started);
  return started;
}

beforeAll(async () => {
  kubectl = await locateKubectl("");
  mkdirSync(tmp);
  for (const [path, text] of Object.entries(foreignRepository)) {
    mkdirSync(dirname(join(repository, path)), { recursive: true });
    writeFileSync(join(repository, path), text);
  }
  await git("init", "-q", "-b", "trunk", ".");
  await git("add", ".");
  await git("commit", "-qm", "Begin");
  head = await git("rev-parse", "HEAD");
});

afterEach(async () => {
  for (const each of running) {
    if (each.child.exitCode === null) each.child.kill("SIGTERM");
    await each.ended();
  }
  running.clear();
});

afterAll(async () => {
  neverStarts?.child.kill("SIGTERM");
  await neverStarts?.ended();
  rmSync(home, { recursive: true, force: true });
});

/** Writes a file with the manifests that kubectl makes of the folder. */
async function manifestsOf(folder: string): Promise<string> {
  const file = join(home, "given.yaml");
  const path = join(repository, folder);
  const plain = readdirSync(path).filter((name) => /\.(ya?ml|json)$/.test(name));
  const isKustomization = plain.some((name) => name.startsWith("kustomization."));
  const text = isKustomization
    ? (await run(kubectl, ["kustomize", path])).stdout
    : plain.map((name) => readFileSync(join(path, name), "utf8")).join("\n---\n");
  writeFileSync(file, text);
  return file;
}

describe("the demo of a user's repository", () => {
  test.each([
    { folder: "overlays/{{ cluster.labels.ring }}", ref: "trunk" },
    { folder: "single", ref: "trunk" },
    { folder: "plain", ref: "HEAD" },
  ])("the demo leaves in every cluster exactly what kubectl makes of $folder", async ({ folder, ref }) => {
    const keep = join(home, `keep ${folder.split("/")[0]}`);
    const started = demo(["--repo", repository, "--path", folder, "--ref", ref, "--clusters", "3", "--keep", keep]);
    await started.until(/^in sync: .*\n/m);
    expect(started.out()).toMatch(
      /\n {2}npm run starling -- rollout status shop\n\nIn a browser: http:\/\/127\.0\.0\.1:\d+\/\S+\n\n/,
    );
    const revision = ref === "HEAD" ? head : `trunk@sha1:${head}`;
    expect(started.out()).toMatch(new RegExp(`\\nin sync: 3/3 clusters at .*${revision}\\n$`));

    const kubeconfig = join(keep, "kubeconfig");
    expect(statSync(kubeconfig).mode & 0o077).toBe(0);
    const contexts = (await run(kubectl, ["--kubeconfig", kubeconfig, "config", "get-contexts", "-o", "name"])).stdout;
    expect(contexts.trim().split("\n").sort()).toEqual(["broad-1", "canary-1", "early-1"]);
    for (const context of contexts.trim().split("\n")) {
      const ring = context.split("-")[0] ?? "";
      const file = await manifestsOf(folder.replace("{{ cluster.labels.ring }}", ring));
      const given = await decodeManifests(kubectl, file);
      expect(given.length).toBeGreaterThanOrEqual(20);
      expect(await differences(clusterReader({ kubectl, kubeconfig, context }), { file, given }), context).toEqual([]);
    }
    started.child.kill("SIGTERM");
    expect(await started.ended()).toBe(0);
    expect(readdirSync(tmp)).toEqual([]);
  });
});

describe("the end of the demo", () => {
  beforeAll(() => {
    const beside = join(home, "beside");
    mkdirSync(beside);
    neverStarts = startDemo(["--repo", repository, "--path", "broken", "--clusters", "2"], { tmp: beside });
  });

  const pids = () => processesWith(tmp).map((line) => Number.parseInt(line, 10));
  const demoItself = () => processesWith(tmp).find((line) => line.includes("local/stories/demo.ts"));

  async function nothingIsLeft(ports: readonly number[]): Promise<void> {
    await vi.waitFor(() => expect(processesWith(tmp)).toEqual([]), { timeout: 30_000, interval: 50 });
    for (const port of ports) expect(await listens(port), `port ${port}`).toBe(false);
    expect(readdirSync(tmp)).toEqual([]);
  }

  test.each([
    { moment: "while it starts", seen: undefined, signal: "SIGINT", code: 130 },
    { moment: "when it has begun", seen: /Starling runs on this machine/, signal: "SIGTERM", code: 143 },
    { moment: "while clusters change", seen: /changing {2}|changing$/m, signal: "SIGINT", code: 130 },
    { moment: "between two rollouts", seen: /^2\. A push/m, signal: "SIGHUP", code: 129 },
  ] as const)(
    "the demo leaves no process, no port and no file after $signal $moment",
    async ({ seen, signal, code }) => {
      const started = demo(["--clusters", "3"]);
      await (seen === undefined
        ? vi.waitFor(() => expect(demoItself()).toBeDefined(), { timeout: 30_000, interval: 20 })
        : started.until(seen));
      const ports = portsOf(pids());
      started.child.kill(signal);
      expect(await started.ended()).toBe(code);
      await nothingIsLeft(ports);
    },
  );

  test.each([
    { whom: "the parent", pidOf: (started: StartedProcess) => started.child.pid },
    { whom: "the demo itself", pidOf: () => Number.parseInt(demoItself() ?? "", 10) },
  ])("the demo leaves no process, no port and no file after a SIGKILL of $whom", async ({ pidOf }) => {
    const started = demo(["--clusters", "3"]);
    await started.until(/changing/);
    const ports = portsOf(pids());
    expect(ports.length).toBeGreaterThanOrEqual(4);
    process.kill(pidOf(started) ?? 0, "SIGKILL");
    await nothingIsLeft(ports);
  });

  test("the demo leaves no process, no port and no file when its reader closes the pipe", async () => {
    const started = demo(["--clusters", "3"]);
    await started.until(/\n/);
    const ports = portsOf(pids());
    started.child.stdout?.destroy();
    expect(await started.ended()).toBe(141);
    expect(started.err()).toBe("");
    await nothingIsLeft(ports);
  });
});

describe("errors of the demo", () => {
  test("the demo names a wrong option, and the folders that exist", async () => {
    const started = demo(["--repo", repository, "--path", "nope"]);
    expect(await started.ended()).toBe(1);
    expect(started.err()).toContain("has no such folder; it has base, broken,");
    expect(readdirSync(tmp)).toEqual([]);
  });

  test("the demo says that git is missing", async () => {
    const path = join(home, "bin");
    mkdirSync(path);
    for (const program of ["sh", "env"])
      symlinkSync((await run("which", [program])).stdout.trim(), join(path, program));
    const started = demo([], { path });
    expect(await started.ended()).toBe(1);
    expect(started.err()).toContain("git is not on the PATH; install git");
    expect(readdirSync(tmp)).toEqual([]);
  });

  test("the demo ends with a halted rollout and its reason when an image cannot be pulled", async () => {
    expect(await neverStarts?.ended()).toBe(1);
    const out = neverStarts?.out() ?? "";
    expect(out.replaceAll(/\s+/g, " ")).toMatch(
      /halted: 1 of 1 cluster failed in stage canary \(allowed: 0\): .* ImagePullBackOff/,
    );
    expect(out).toContain(
      "\nThe demo has ended and left nothing running. Commands to try next:\n\n  the same command with --keep ./demo ",
    );
    expect(out).toMatch(/\nin sync: 0\/2 clusters at trunk@sha1:[0-9a-f]{40}\n$/);
    for (const line of out.split("\n")) expect(line).toMatch(/^.{0,90}$(?<! )/);
  });
});
