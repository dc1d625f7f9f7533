import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { locateKubectl } from "#shared/adapters/kubectl-binary.ts";
import { clusterReader, decodeManifests, differences } from "#test/support/cluster-reader.ts";
import { type DemoProcess, startDemo } from "#test/support/demo-process.ts";
import { foreignRepository } from "#test/support/foreign-repository.ts";

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), "starling-demo-test-"));
const tmp = join(home, "tmp");
const repository = join(home, "books of ours");
const running = new Set<DemoProcess>();
let kubectl = "";
let head = "";

async function git(...args: readonly string[]): Promise<string> {
  const identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];
  return (await run("git", [...identity, ...args], { cwd: repository })).stdout.trim();
}

function demo(args: readonly string[], options: { readonly path?: string } = {}): DemoProcess {
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

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

/** A file with what the folder means to kubectl. */
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

describe("the demo on a repository that was not written for it", () => {
  it.each([
    { folder: "overlays/{{ cluster.labels.ring }}", ref: "trunk" },
    { folder: "single", ref: "trunk" },
    { folder: "plain", ref: "HEAD" },
  ])("leaves in every cluster exactly what kubectl makes of $folder", async ({ folder, ref }) => {
    const keep = join(home, `keep ${folder.split("/")[0]}`);
    const told = demo(["--repo", repository, "--path", folder, "--ref", ref, "--clusters", "3", "--keep", keep]);
    await told.until(/^in sync: .*\n/m);
    const revision = ref === "HEAD" ? head : `trunk@sha1:${head}`;
    expect(told.out()).toMatch(new RegExp(`\\nin sync: 3/3 clusters at .*${revision}\\n$`));

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
    told.child.kill("SIGTERM");
    expect(await told.ended()).toBe(0);
    expect(readdirSync(tmp)).toEqual([]);
  });
});
