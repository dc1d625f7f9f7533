import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { findKubeAssets } from "#local/clusters/kube-assets.ts";
import { makeLocalHome, settings } from "#test/support/local-home.ts";
import { listens, portsOf, processesWith } from "#test/support/processes.ts";

const home = await makeLocalHome();
const { cli, kubectl } = home;
const assets = await findKubeAssets(process.env.KUBEBUILDER_ASSETS);

const isGone = (state: string) =>
  vi.waitFor(() => expect(processesWith(state)).toEqual([]), { timeout: 30_000, interval: 50 });

/** Applies a group that follows the repository of this machine on all of its clusters. */
async function follow(state: string): Promise<void> {
  const { url, credentials } = (await home.status(state)).repository;
  const documents = [
    { kind: "Source", metadata: { name: "shop" }, spec: { git: { url, credentials } } },
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
  writeFileSync(join(home.folder, "fleet.yaml"), text.join("\n---\n"));
  expect(await cli("apply -f fleet.yaml")).toMatchObject({ code: 0 });
}

const untilInSync = (state: string) => home.untilStatus("syncgroup:   default/shop  Complete  1/1  main@sha1:", state);

beforeAll(async () => {
  await home.commit({ "settings.yaml": settings("one") });
});

afterAll(async () => {
  for (const state of ["theirs", "real", "mine", "early", "killed", "second", "first", "shared"])
    await cli(`local down --state ${state}`);
  home.remove();
});

describe("a user's own cluster", () => {
  test("local up keeps a user's cluster in sync through an account that it makes there, and Ctrl-C leaves nothing on the machine", async () => {
    expect(await cli("local up --state theirs --clusters 1")).toMatchObject({ code: 0 });
    const refused = await cli("local faults set clusters/canary-1 latncy=5ms --state theirs");
    const remedy = "starling local faults set clusters/canary-1 latency=5ms";
    expect(refused).toMatchObject({
      err: expect.stringContaining(`next: ${remedy} --state ${join(home.folder, "theirs")}`),
    });
    const theirs = join(home.folder, "theirs", "kubeconfig");

    const mine = home.start(
      "local up --state mine --kubeconfig theirs/kubeconfig --context canary-1 --yes --foreground --repo shop",
    );
    await mine.until(/local runs until Ctrl-C/, { of: "err" });
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

    const ports = portsOf(processesWith(join(home.folder, "mine")).map((line) => Number.parseInt(line, 10)));
    expect(ports.length).toBeGreaterThanOrEqual(4);
    mine.child.kill("SIGINT");
    expect(await mine.ended()).toBe(130);
    expect(mine.err()).toContain("interrupted");
    await isGone(join(home.folder, "mine"));
    for (const port of ports) expect(await listens(port), `port ${port}`).toBe(false);
    expect((await cli("context list")).err).toContain("no context");

    // The account and the applied objects stay for the user to remove. The next start needs no confirmation.
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

describe("two machines on one cluster", () => {
  test("two machines are two installations, and the second one gets the first one's name and changes nothing", async () => {
    expect(await cli("local up --state shared --clusters 1")).toMatchObject({ code: 0 });
    const kubeconfig = join(home.folder, "shared", "kubeconfig");
    const one = "--kubeconfig shared/kubeconfig --context canary-1 --yes --repo shop";
    expect(await cli(`local up --state first ${one}`)).toMatchObject({ code: 0 });
    await follow("first");
    await untilInSync("first");
    const version = "get configmap settings -o jsonpath={.metadata.resourceVersion}";
    const before = await kubectl(kubeconfig, version);
    const parent = await kubectl(kubeconfig, "-n starling-system get configmap default.shop.web -o json");

    expect(await cli(`local up --state second ${one}`)).toMatchObject({ code: 0 });
    await follow("second");
    const sync = "get syncs --cluster canary-1";
    await vi.waitFor(async () => expect((await cli(sync)).out).toContain("ForeignOwner"), { timeout: 60_000 });
    const owner = JSON.parse(parent).metadata.annotations["starling.dev/installation"];
    const { out } = await cli("describe sync/shop.web --cluster canary-1");
    expect(out).toContain(`belongs to the installation ${owner}`);
    expect(await kubectl(kubeconfig, version)).toBe(before);
    expect(await kubectl(kubeconfig, "-n starling-system get configmap default.shop.web -o json")).toBe(parent);
    expect(await untilInSync("first")).toContain("1 Ready");
  });
});

describe("the end of the starting command", () => {
  test.each([
    ["early", "Ctrl-C while it starts", "SIGINT", /starting Starling/, "local up --state early --clusters 1", 130],
    [
      "killed",
      "kill -9 of the command in the foreground",
      "SIGKILL",
      /until Ctrl-C/,
      "local up --foreground --state killed",
      "SIGKILL",
    ],
  ] as const)("%s: local up leaves no process after %s", async (state, _what, signal, pattern, line, ended) => {
    // The shim that finds Node 24 is left out, because the signal is for the command itself.
    const process = home.start(line);
    await process.until(pattern, { of: "err" });
    process.child.kill(signal);
    expect(await process.ended()).toBe(ended);
    await isGone(join(home.folder, state));
    expect(existsSync(join(home.folder, state, "pid"))).toBe(false);
  });
});

describe.skipIf(assets === undefined)("a real kube-apiserver", () => {
  test("a real kube-apiserver comes back at the next start with the applied objects", async () => {
    expect(await cli("local up --state real --envtest --repo shop")).toMatchObject({ code: 0 });
    const kubeconfig = join(home.folder, "real", "kubeconfig");
    await follow("real");
    await untilInSync("real");
    const uid = await kubectl(kubeconfig, "get configmap settings -o jsonpath={.metadata.uid}");
    const before = readFileSync(kubeconfig, "utf8");

    expect(await cli("local down --state real")).toMatchObject({ code: 0 });
    await isGone(join(home.folder, "real"));
    expect(await cli("local up --state real")).toMatchObject({ code: 0 });
    expect(readFileSync(kubeconfig, "utf8")).toBe(before);
    expect(await kubectl(kubeconfig, "get configmap settings -o jsonpath={.metadata.uid}")).toBe(uid);
    expect((await cli("local kubeconfig --state real")).out).toBe(before);
    expect(await cli("local down --state real")).toMatchObject({ code: 0 });
  });
});
