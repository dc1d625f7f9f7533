/** Phases, waves and hooks of an apply, checked by the requests that the cluster gets, also when workers die. */
import { describe, expect, test } from "vitest";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { JsonObject } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { type ClusterWorker, startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";
import { type Death, type JobEnd, playControllers, workUntil } from "#test/support/played-cluster.ts";

const worker = forEachTest(startPatientWorker);
const jobs = "/apis/batch/v1/namespaces/shop/jobs";

type Annotations = Readonly<Record<string, string>>;

function annotated(object: ManifestObject, annotations: Annotations): ManifestObject {
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function job(name: string, annotations: Annotations, spec: JsonObject = {}): ManifestObject {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "m", image: "m:1" }] } };
  const metadata = { name, namespace: "shop" };
  return annotated({ apiVersion: "batch/v1", kind: "Job", metadata, spec: { ...spec, template } }, annotations);
}

const wave = (at: number) => ({ "argocd.argoproj.io/sync-wave": String(at) });
const argo = (hook: string, policy?: string) => ({
  "argocd.argoproj.io/hook": hook,
  ...(policy === undefined ? {} : { "argocd.argoproj.io/hook-delete-policy": policy }),
});
const helm = (hook: string, policy?: string) => ({
  "helm.sh/hook": hook,
  ...(policy === undefined ? {} : { "helm.sh/hook-delete-policy": policy }),
});

/** The writes in order: names of objects, `-name` for a deletion. Repeated applies of one object count once. */
function written({ host }: ClusterWorker): readonly string[] {
  const names = host.requests().flatMap(({ method, path, status, userAgent }) => {
    const name = path.split("/").at(-1) ?? "";
    if (userAgent === "e2e-by-hand" || status >= 300 || path.includes("starling-system")) return [];
    return method === "PATCH" ? [name] : method === "DELETE" ? [`-${name}`] : [];
  });
  return names.filter((name, index) => name !== names[index - 1]);
}

/** How often a Job was made. */
function made({ host }: ClusterWorker, name: string): number {
  return host
    .requests()
    .filter(({ method, path, result }) => method === "PATCH" && path === `${jobs}/${name}` && result === 201).length;
}

async function play(w: ClusterWorker, endOf?: (name: string) => JobEnd): Promise<void> {
  const [connection] = w.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  const patch = (path: string, body: JsonObject) => byHand(connection, { method: "PATCH", path, body });
  await playControllers(w.host.objects("c1"), patch, endOf);
}

/** Checks, and plays the controllers, until the Sync has the phase. */
async function until(w: ClusterWorker, phase: string, endOf?: (name: string) => JobEnd): Promise<void> {
  for (let check = 0; check < 40; check++) {
    await w.world.work();
    if ((await w.world.phase("web")) === phase) return;
    await play(w, endOf);
    w.world.aheadMs += 70_000;
  }
  throw new Error(`it is not ${phase}: ${JSON.stringify((await w.observed()).message)}`);
}

async function exists(w: ClusterWorker, name: string): Promise<boolean> {
  return w.host.objects("c1").some((object) => (object.metadata as JsonObject).name === name);
}

const app = [
  namespace("shop"),
  job("migrate", argo("PreSync")),
  annotated(deployment("shop/db"), wave(1)),
  annotated(configMap("shop/settings"), {}),
  annotated(deployment("shop/web"), wave(2)),
  job("notify", argo("PostSync", "HookSucceeded")),
  job("undo", argo("SyncFail")),
];

test("each step is ready before the next begins, and a hook is run once", async () => {
  const w = worker;
  await w.world.assign("web", app);
  await w.world.work();
  expect(await w.observed()).toMatchObject({ phase: "Applying", reason: "StepNotReady" });
  expect((await w.observed()).message).toBe("PreSync, wave 0: 1 of 2 objects ready; what comes after it waits");
  expect(written(w)).toEqual(["shop", "migrate"]);
  w.world.aheadMs += 5_000;
  await w.world.work();
  expect(written(w)).toEqual(["shop", "migrate"]);

  await play(w);
  w.world.aheadMs += 5_000;
  await w.world.work();
  expect(written(w)).toEqual(["shop", "migrate", "settings", "db"]);
  expect((await w.observed()).message).toMatch(/^Sync, wave 1: 0 of 1 objects ready/);

  await play(w);
  w.world.aheadMs += 15_000;
  await w.world.work();
  expect(written(w)).toEqual(["shop", "migrate", "settings", "db", "web"]);

  await until(w, "Ready");
  expect(written(w)).toEqual(["shop", "migrate", "settings", "db", "web", "notify", "-notify"]);
  expect(made(w, "migrate")).toBe(1);
  expect((await w.observed()).objects).toMatchObject({ total: 4, ready: 4, failed: 0, foreign: 0 });
  // The Sync does not depend on a hook that has already run.
  await byHand(w.host.connections()[0] as never, {
    method: "DELETE",
    path: `${jobs}/migrate?propagationPolicy=Background`,
  });
  w.world.aheadMs += 700_000;
  await w.world.work();
  expect(await w.observed()).toMatchObject({ phase: "Ready", objects: { total: 4, ready: 4, foreign: 0 } });
  expect(made(w, "migrate")).toBe(1);
});

test("hooks run once for a rendering, and again for another rendering", async () => {
  const w = worker;
  await w.world.assign("web", app);
  await until(w, "Ready");
  await w.world.assign("web", app);
  await until(w, "Ready");
  expect([made(w, "migrate"), made(w, "notify")]).toEqual([1, 1]);
  await w.world.assign("web", [...app, configMap("shop/more")]);
  await until(w, "Ready");
  expect([made(w, "migrate"), made(w, "notify")]).toEqual([2, 2]);
  // The remains of a hook are deleted with its Sync, or when git no longer has it.
  await w.world.assign("web", [namespace("shop"), configMap("shop/settings")]);
  await until(w, "Ready");
  expect(w.members()).toEqual(["ConfigMap settings", "Namespace shop"]);
});

test("a hook that fails ends the attempt, runs the failure hooks, and is run again by the next attempt", async () => {
  const w = worker;
  const failing = [
    namespace("shop"),
    job("migrate", argo("PreSync", "HookFailed,BeforeHookCreation")),
    configMap("shop/settings"),
    job("undo", argo("SyncFail")),
  ];
  await w.world.assign("web", failing);
  const end = (name: string): JobEnd => (name === "migrate" ? "Failed" : "Complete");
  await until(w, "Failed", end);
  expect(await w.observed()).toMatchObject({
    reason: "HookFailed",
    message: "PreSync, wave 0: the hook Job shop/migrate failed: Job Failed. failed: 1/1",
  });
  expect(written(w)).toEqual(["shop", "migrate", "-migrate", "undo"]);
  expect(await exists(w, "settings")).toBe(false);
  // A later check does not run it again either.
  w.world.aheadMs += 700_000;
  await w.world.work();
  expect(await w.observed()).toMatchObject({ phase: "Failed", reason: "HookFailed" });
  expect(made(w, "migrate")).toBe(1);

  await w.world.assign("web", failing);
  await until(w, "Ready");
  expect(made(w, "migrate")).toBe(2);
  expect(await exists(w, "settings")).toBe(true);
});

test("an install runs Helm's install hooks, and every later rendering runs the upgrade hooks", async () => {
  const w = worker;
  const chart = (version: string) => [
    namespace("shop"),
    job("install", helm("pre-install", "before-hook-creation,hook-succeeded")),
    job("upgrade", helm("pre-upgrade")),
    job("both", helm("post-install,post-upgrade")),
    configMap("shop/settings", { version }),
  ];
  // The objects of an install are no reason to take the next try for an upgrade.
  await w.world.assign("web", chart("0"));
  await w.world.work();
  expect(await w.recorded()).toEqual(["Job install", "Namespace shop"]);
  await w.world.assign("web", chart("1"));
  await until(w, "Ready");
  expect([made(w, "install"), made(w, "upgrade"), made(w, "both")]).toEqual([2, 0, 1]);
  await w.world.assign("web", chart("2"));
  await until(w, "Ready");
  expect([made(w, "install"), made(w, "upgrade"), made(w, "both")]).toEqual([2, 1, 2]);
});

test("an object that depends on a failed one is not applied, and an invalid order is reported before anything is written", async () => {
  const w = worker;
  const dependsOn = (reference: string) => ({ "config.kubernetes.io/depends-on": reference });
  const web = annotated(deployment("shop/web"), dependsOn("apps/namespaces/shop/Deployment/gone"));
  await w.world.assign("web", [namespace("shop"), web]);
  await w.world.work();
  expect(await w.observed()).toMatchObject({ phase: "Failed", reason: "OrderInvalid" });
  expect((await w.observed()).message).toMatch(
    /^nothing was applied: Deployment shop\/web, .* names Deployment shop\/gone, which is not/,
  );
  expect(w.host.requests().filter(({ method }) => method !== "GET")).toEqual([]);

  const after = annotated(configMap("shop/after"), dependsOn("apps/namespaces/shop/Deployment/db"));
  await w.world.assign("web", [namespace("shop"), deployment("shop/db"), after]);
  await w.world.work();
  expect(await w.observed()).toMatchObject({ phase: "Applying", reason: "StepNotReady" });
  expect(w.members()).toEqual(["Deployment db", "Namespace shop"]);
  await until(w, "Ready");
  expect(w.members()).toEqual(["ConfigMap after", "Deployment db", "Namespace shop"]);
});

test("an object of a step that somebody deletes while the step waits for it is restored", async () => {
  const w = worker;
  await w.world.assign("web", app);
  await w.world.work();
  await play(w);
  w.world.aheadMs += 15_000;
  await w.world.work();
  await byHand(w.host.connections()[0] as never, {
    method: "DELETE",
    path: "/apis/apps/v1/namespaces/shop/deployments/db",
  });
  await until(w, "Ready");
  expect(await exists(w, "db")).toBe(true);
});

test("a hook that somebody deletes while it runs is neither taken for complete nor for one that never ran", async () => {
  const w = worker;
  await w.world.assign("web", app);
  await w.world.work();
  await byHand(w.host.connections()[0] as never, {
    method: "DELETE",
    path: `${jobs}/migrate?propagationPolicy=Background`,
  });
  await until(w, "Failed");
  expect(await w.observed()).toMatchObject({ reason: "ApplyFailed" });
  expect((await w.observed()).message).toContain("Job shop/migrate was deleted before Starling saw");
});

test("a Job that would remove itself stays until the worker has seen its result", async () => {
  const w = worker;
  await w.world.assign("web", [namespace("shop"), job("migrate", argo("PreSync"), { ttlSecondsAfterFinished: 0 })]);
  await w.world.work();
  const [migrate] = w.host.objects("c1").filter(({ kind }) => kind === "Job");
  expect(migrate?.spec).not.toHaveProperty("ttlSecondsAfterFinished");
});

test("an object with a hook's name that does not belong to the Sync is left alone", async () => {
  const w = worker;
  const [connection] = w.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  await byHand(connection, { method: "POST", path: "/api/v1/namespaces", body: namespace("shop") });
  await byHand(connection, { method: "POST", path: jobs, body: job("migrate", {}) });
  await w.world.assign("web", app);
  await w.world.work();
  expect((await w.observed()).problems).toMatchObject([
    {
      object: "Job shop/migrate",
      reason: "HookExists",
      message: expect.stringContaining("was not created by this Sync"),
    },
  ]);
  expect(made(w, "migrate")).toBe(0);
});

const short = [
  namespace("shop"),
  job("migrate", argo("PreSync")),
  configMap("shop/settings"),
  annotated(configMap("shop/late"), wave(1)),
  job("notify", argo("PostSync", "HookSucceeded")),
  job("undo", argo("SyncFail")),
];

describe("an apply with hooks whose worker dies at any write", () => {
  test.each(["before", "after"] as const)(
    "the hooks run once and the Sync becomes Ready if the worker dies %s the write takes effect",
    async (when) => {
      let deaths = 0;
      for (let at = 1; ; at++) {
        const w = await startPatientWorker();
        try {
          if (!(await diesInstalling({ at, when }, w))) break;
          deaths += 1;
        } finally {
          await w.stop();
        }
      }
      expect(deaths).toBeGreaterThan(20);
    },
    300_000,
  );

  /** @returns whether the worker died, because it made that many writes. */
  async function diesInstalling(death: Death, w: ClusterWorker): Promise<boolean> {
    const kube = new KubeConnection(w.endpoint, w.world.clock);
    const connector = { connect: async () => kube.client({ deadlineMs: Date.now() + 600_000 }), distrust() {} };
    await w.world.assign("web", short);
    let left = death.at;
    let hasDied = false;
    for (let check = 0; check < 40 && !hasDied && (await w.world.phase("web")) !== "Ready"; check++) {
      let seen = 0;
      hasDied = await workUntil(w.world, connector, { at: left, when: death.when, heard: (count) => (seen = count) });
      left -= seen;
      await play(w);
      w.world.aheadMs += 70_000;
    }
    kube.close();
    await until(w, "Ready");
    expect([death, made(w, "migrate"), made(w, "notify"), made(w, "undo")]).toEqual([death, 1, 1, 0]);
    expect(w.members()).toEqual(["ConfigMap late", "ConfigMap settings", "Job migrate", "Namespace shop"]);
    expect(await w.recorded()).toEqual(w.members());
    return hasDied;
  }
});
