/**
 * Objects that depend on each other are deleted in the reverse of the order in which they are applied. The test reads
 * the cluster without Starling, at the moment of each DELETE.
 */
import { describe, expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import { deleteSet } from "#shared/kube/engine/delete-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { type PruneResult, pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import {
  claimFor,
  configMap,
  definition,
  deployment,
  inSeconds,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { engineWorld, pruneRequest } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

const dependsOn = "config.kubernetes.io/depends-on";
const wave = "argocd.argoproj.io/sync-wave";

function annotated(object: ManifestObject, annotations: Readonly<Record<string, string>>): ManifestObject {
  return { ...object, metadata: { ...object.metadata, annotations } };
}

describe.each(clusterTargets)("the order of deletion on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  interface Applied {
    readonly claim: SyncClaim;
    readonly inventory: Inventory;
  }

  async function applied(set: string, objects: readonly ManifestObject[]): Promise<Applied> {
    const claim = claimFor(set);
    await ensureParent(cluster.client, { claim, groupKinds: [] });
    return { claim, inventory: await cluster.applied(set, objects) };
  }

  const config = (ns: string, name: string) => `/api/v1/namespaces/${ns}/configmaps/${name}`;
  const workload = (ns: string, name: string) => `/apis/apps/v1/namespaces/${ns}/deployments/${name}`;
  const patch = (path: string, metadata: object) =>
    cluster.raw("PATCH", path, { as: "merge-patch", body: { metadata } });
  const hold = (path: string) => patch(path, { finalizers: ["example.com/hold"] });
  const releaseTemplates = (path: string) => patch(path, { finalizers: null });

  /** Whether no deletion of the object was requested. */
  async function isUntouched(path: string): Promise<boolean> {
    const { metadata } = (await cluster.raw("GET", path)) as { readonly metadata: object };
    return !("deletionTimestamp" in metadata);
  }

  const outcomes = (result: PruneResult) =>
    result.outcome === "refused"
      ? result.reason
      : Object.fromEntries(result.objects.map(({ id, outcome }) => [`${id.kind} ${id.name}`, outcome]));
  const messageOf = (result: PruneResult, name: string) =>
    result.outcome === "refused" ? undefined : result.objects.find(({ id }) => id.name === name)?.message;

  function left(set: Applied, result: PruneResult): Applied {
    if (result.outcome === "refused") throw new Error(result.message);
    return { ...set, inventory: changeInventory(set.inventory, { recorded: [], settled: result.settled }) };
  }

  /** Prunes, and notes at each DELETE which of the objects still exist. */
  async function watchedPrune(set: Applied, keep: readonly ManifestObject[], paths: Readonly<Record<string, string>>) {
    const seen: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method !== "delete") return;
      const there: string[] = [];
      for (const [named, path] of Object.entries(paths)) if ((await cluster.statusOf(path)) === 200) there.push(named);
      seen.push(`${name} with ${there.join(", ")}`);
    });
    return { result: await pruneSet(client, pruneRequest(set, keep)), seen };
  }

  test("a dependent object is gone before its dependency is deleted, whatever their kinds", async () => {
    const ns = "kinds";
    const keep = [namespace(ns)];
    const chain = [
      deployment(`${ns}/db`),
      annotated(configMap(`${ns}/settings`), { [dependsOn]: `apps/namespaces/${ns}/Deployment/db` }),
      annotated(deployment(`${ns}/web`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/settings` }),
    ];
    const set = await applied(ns, [...keep, ...chain]);
    const paths = { db: workload(ns, "db"), settings: config(ns, "settings"), web: workload(ns, "web") };
    const { result, seen } = await watchedPrune(set, keep, paths);
    expect(seen).toEqual(["web with db, settings, web", "settings with db, settings", "db with db"]);
    expect(result).toMatchObject({ outcome: "done", notes: [] });
  });

  test("an object that a finalizer holds keeps its direct and indirect dependencies, and is named", async () => {
    const ns = "holding";
    const chain = [
      configMap(`${ns}/db`),
      annotated(configMap(`${ns}/api`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/db` }),
      annotated(configMap(`${ns}/web`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/api` }),
      configMap(`${ns}/alone`),
    ];
    let set = await applied(ns, [namespace(ns), ...chain]);
    await hold(config(ns, "web"));
    const request = () => ({ ...set, unrecorded: [], clock: systemClock, deadline: inSeconds(60) });
    const first = await deleteSet(cluster.client, request());
    expect(outcomes(first)).toMatchObject({
      "ConfigMap web": "terminating",
      "ConfigMap api": "waiting",
      "ConfigMap db": "waiting",
      "ConfigMap alone": "deleted",
    });
    expect(messageOf(first, "api")).toBe(
      "waits until ConfigMap holding/web, which depends on it, is deleted: it is being deleted, held by example.com/hold",
    );
    expect(messageOf(first, "db")).toBe("waits until ConfigMap holding/api, which depends on it, is deleted");
    expect(await Promise.all([isUntouched(config(ns, "api")), isUntouched(config(ns, "db"))])).toEqual([true, true]);
    set = left(set, first);
    expect(outcomes(await deleteSet(cluster.client, request()))).toMatchObject({ "ConfigMap api": "waiting" });
    await releaseTemplates(config(ns, "web"));
    await hold(config(ns, "api"));
    const second = await deleteSet(cluster.client, request());
    expect(outcomes(second)).toMatchObject({ "ConfigMap web": "absent", "ConfigMap api": "terminating" });
    expect(await isUntouched(config(ns, "db"))).toBe(true);
    await releaseTemplates(config(ns, "api"));
    set = left(set, second);
    expect(outcomes(await deleteSet(cluster.client, request()))).toMatchObject({ "ConfigMap db": "deleted" });
  });

  test("a list that fails for the moment deletes nothing in another order", async () => {
    const ns = "not-listed";
    const keep = [namespace(ns)];
    const set = await applied(ns, [
      ...keep,
      deployment(`${ns}/db`),
      annotated(configMap(`${ns}/web`), { [dependsOn]: `apps/namespaces/${ns}/Deployment/db` }),
    ]);
    await hold(config(ns, "web"));
    const request = { method: "GET", path: "/api/v1/configmaps", secret: false };
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method !== "list" || name !== "configmaps") return;
      throw new KubeError(request, { status: 503, message: "the server is currently unable", causes: [] });
    });
    const result = await pruneSet(client, pruneRequest(set, keep));
    expect(outcomes(result)).toEqual({ "ConfigMap web": "waiting", "Deployment db": "waiting" });
    expect(messageOf(result, "db")).toMatch(
      /^waits until ConfigMap can be listed, because its marks decide the order of deletion: .*unable/,
    );
    expect(await Promise.all([isUntouched(config(ns, "web")), isUntouched(workload(ns, "db"))])).toEqual([true, true]);
    await releaseTemplates(config(ns, "web"));
    expect(outcomes(await pruneSet(cluster.client, pruneRequest(set, keep)))).toMatchObject({
      "Deployment db": "deleted",
    });
  });

  test("the later wave is gone before the earlier one is deleted", async () => {
    const ns = "waves";
    const keep = [namespace(ns)];
    const waves = [
      annotated(deployment(`${ns}/first`), { [wave]: "-1" }),
      configMap(`${ns}/middle`),
      annotated(configMap(`${ns}/last`), { [wave]: "2" }),
    ];
    const paths = { first: workload(ns, "first"), middle: config(ns, "middle"), last: config(ns, "last") };
    const set = await applied(ns, [...keep, ...waves]);
    await hold(paths.last);
    const held = await watchedPrune(set, keep, paths);
    expect(held.seen).toEqual(["last with first, middle, last"]);
    expect(messageOf(held.result, "middle")).toBe(
      "waits until ConfigMap waves/last of wave 2 is deleted: it is being deleted, held by example.com/hold",
    );
    await releaseTemplates(paths.last);
    const { seen } = await watchedPrune(left(set, held.result), keep, paths);
    expect(seen).toEqual(["middle with first, middle", "first with first"]);
  });

  test("a Namespace and a definition of a later wave are deleted last all the same, and delay no object", async () => {
    const group = "laterwave.example.com";
    const ns = "late-wave";
    const late = [annotated(namespace(ns), { [wave]: "5" }), annotated(definition(group), { [wave]: "5" })];
    const set = await applied(ns, [...late, widget(group, `${ns}/w`), configMap(`${ns}/c`)]);
    // The Namespace waits for its controller, which does not run here.
    await expect
      .poll(async () => outcomes(await pruneSet(cluster.client, pruneRequest(set, []))), { timeout: 20_000 })
      .toEqual({
        "Widget w": "absent",
        "ConfigMap c": "absent",
        [`CustomResourceDefinition widgets.${group}`]: "absent",
        [`Namespace ${ns}`]: "terminating",
      });
  });

  test("objects with circular or unreadable dependencies are deleted by kind, and that is reported", async () => {
    const ns = "circle";
    const keep = [namespace(ns)];
    const set = await applied(ns, [...keep, configMap(`${ns}/a`), configMap(`${ns}/b`), deployment(`${ns}/web`)]);
    await patch(config(ns, "a"), { annotations: { [dependsOn]: `/namespaces/${ns}/ConfigMap/b` } });
    await patch(config(ns, "b"), { annotations: { [dependsOn]: `/namespaces/${ns}/ConfigMap/a` } });
    await patch(workload(ns, "web"), { annotations: { [dependsOn]: "nonsense" } });
    const result = await pruneSet(cluster.client, pruneRequest(set, keep));
    expect(outcomes(result)).toEqual({
      "Deployment web": "deleted",
      "ConfigMap a": "deleted",
      "ConfigMap b": "deleted",
    });
    const notes = result.outcome === "refused" ? [] : result.notes.map(({ id, message }) => `${id.name}: ${message}`);
    expect(notes).toEqual([
      expect.stringMatching(
        /^web: .*depends-on has "nonsense", expected .*; the object is deleted in the order of its kind$/,
      ),
      `a: ${dependsOn} forms a cycle with ConfigMap circle/b; the object is deleted in the order of its kind`,
      `b: ${dependsOn} forms a cycle with ConfigMap circle/a; the object is deleted in the order of its kind`,
    ]);
  });

  test("a dependency on an object that stays does not matter", async () => {
    const ns = "stays";
    const keep = [namespace(ns), configMap(`${ns}/db`)];
    const web = annotated(configMap(`${ns}/web`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/db` });
    const set = await applied(ns, [...keep, web, configMap(`${ns}/other`)]);
    const result = await pruneSet(cluster.client, pruneRequest(set, keep));
    expect(outcomes(result)).toEqual({ "ConfigMap other": "deleted", "ConfigMap web": "deleted" });
    expect(await isUntouched(config(ns, "db"))).toBe(true);
  });

  test("an object that is marked to stay keeps its dependencies, and that is reported", async () => {
    const ns = "marked";
    const keep = [namespace(ns)];
    const set = await applied(ns, [
      ...keep,
      configMap(`${ns}/disk`),
      annotated(deployment(`${ns}/db`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/disk` }),
      annotated(configMap(`${ns}/web`), {
        [dependsOn]: `apps/namespaces/${ns}/Deployment/db`,
        "starling.dev/prune": "disabled",
      }),
    ]);
    const result = await pruneSet(cluster.client, pruneRequest(set, keep));
    expect(outcomes(result)).toEqual({ "ConfigMap web": "kept", "Deployment db": "kept", "ConfigMap disk": "kept" });
    expect(result).toMatchObject({ outcome: "done", settled: [{ name: "web" }, { name: "db" }, { name: "disk" }] });
    expect(await Promise.all([isUntouched(workload(ns, "db")), isUntouched(config(ns, "disk"))])).toEqual([true, true]);
    expect(result).toMatchObject({
      notes: [
        {
          id: { name: "db" },
          message:
            "it stays, because ConfigMap marked/web depends on it and stays: it is marked starling.dev/prune: disabled",
        },
        { id: { name: "disk" }, message: "it stays, because Deployment marked/db depends on it and stays" },
      ],
    });
  });

  test("a dependency that somebody removed in the cluster counts no longer", async () => {
    const ns = "taken-out";
    const keep = [namespace(ns)];
    const set = await applied(ns, [
      ...keep,
      configMap(`${ns}/db`),
      annotated(configMap(`${ns}/web`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/db` }),
    ]);
    await patch(config(ns, "web"), { annotations: { [dependsOn]: null }, finalizers: ["example.com/hold"] });
    expect(outcomes(await pruneSet(cluster.client, pruneRequest(set, keep)))).toEqual({
      "ConfigMap db": "deleted",
      "ConfigMap web": "terminating",
    });
    await releaseTemplates(config(ns, "web"));
  });

  test("the dependency of an object that is no longer a member keeps nothing", async () => {
    const ns = "left-set";
    const keep = [namespace(ns)];
    const set = await applied(ns, [
      ...keep,
      configMap(`${ns}/db`),
      annotated(configMap(`${ns}/web`), { [dependsOn]: `/namespaces/${ns}/ConfigMap/db` }),
    ]);
    await patch(config(ns, "web"), { labels: { [partOfLabel]: null } });
    expect(outcomes(await pruneSet(cluster.client, pruneRequest(set, keep)))).toEqual({
      "ConfigMap db": "deleted",
      "ConfigMap web": "foreign",
    });
  });
});
