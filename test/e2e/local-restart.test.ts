import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { makeLocalHome, settings } from "#test/support/local-home.ts";
import { listens, portsOf, processesWith } from "#test/support/processes.ts";

const home = await makeLocalHome();
const { cli } = home;
const state = join(home.folder, "kept state");

const up = (...args: readonly string[]) => cli(["local", "up", "--state", state, ...args]);
const down = () => cli(["local", "down", "--state", state]);

const status = () => home.status(state);
const commit = (value: string) => home.commit({ "settings.yaml": settings(value) });
const push = () => home.push(state);
const untilInSync = (revision: string) =>
  home.untilStatus(`syncgroup:   default/shop  Complete  3/3  main@sha1:${revision}`, state);

/** The value of the ConfigMap in every cluster. */
async function values(): Promise<readonly string[]> {
  const kubeconfig = join(state, "kubeconfig");
  const read = (context: string) =>
    home.kubectl(kubeconfig, `--context ${context} get configmap settings -o jsonpath={.data.value}`);
  return Promise.all(["canary-1", "early-1", "broad-1"].map(read));
}

beforeAll(() => {
  writeFileSync(
    join(home.folder, "fleet.yaml"),
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
  home.remove();
});

describe("the machine in the background", () => {
  test("a machine has its addresses and rollouts again at its next start, and continues from there", async () => {
    const first = await commit("one");
    expect(await up("--clusters", "3", "--repo", "shop")).toMatchObject({ code: 0 });
    const before = await status();
    const { url, credentials } = before.repository;
    const git = JSON.stringify({ url, credentials });
    const source = `{apiVersion: starling.dev/v1alpha1, kind: Source, metadata: {name: shop}, spec: {git: ${git}}}`;
    writeFileSync(join(home.folder, "source.yaml"), source);
    expect(await cli(["apply", "-f", "source.yaml", "-f", "fleet.yaml"])).toMatchObject({ code: 0 });
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
    const rollouts = JSON.parse((await cli(["rollout", "list", "shop", "-o", "json"])).out);
    expect(rollouts.items).toHaveLength(1);

    const second = await commit("two");
    await push();
    await untilInSync(second);
    expect(await values()).toEqual(["two", "two", "two"]);
  });

  test("a killed machine is reported as down, and starts again with its clusters", async () => {
    const { pid } = await status();
    // The objects of the clusters are saved every few seconds.
    const held = (name: string) => readFileSync(join(state, "clusters", `${name}.cluster.json`), "utf8");
    await vi.waitFor(
      () => {
        for (const name of ["canary-1", "early-1", "broad-1"]) expect(held(name), name).toContain('"two"');
      },
      { timeout: 20_000, interval: 200 },
    );
    process.kill(pid, "SIGKILL");
    await vi.waitFor(() => expect(processesWith(state)).toEqual([]), { timeout: 20_000 });
    expect(await cli(["local", "status", "--state", state])).toMatchObject({
      code: 1,
      out: expect.stringContaining("local is down: nothing runs in "),
    });
    expect(await up()).toMatchObject({ code: 0 });
    expect(await values()).toEqual(["two", "two", "two"]);
    const third = await commit("three");
    await push();
    await untilInSync(third);
    expect(await values()).toEqual(["three", "three", "three"]);
  });

  test("local up names what prevents a start: a running machine, a used port, or other clusters", async () => {
    expect((await up()).err).toContain("local is already up");
    expect(await up("--clusters", "4")).toMatchObject({ code: 2, err: expect.stringContaining("has 3 embedded") });
    const { endpoint } = await status();
    await down();
    const port = Number(new URL(endpoint).port);
    const other = createServer().listen(port, "127.0.0.1");
    try {
      const taken = await up();
      expect(taken.code).toBe(3);
      expect(taken.err).toContain(`port ${port} of 127.0.0.1 is in use by another process`);
      expect(processesWith(state)).toEqual([]);
    } finally {
      other.close();
    }
    expect(await up("--clusters", "4")).toMatchObject({
      code: 2,
      err: expect.stringContaining("cannot change the clusters to --clusters 4"),
    });
  });
});
