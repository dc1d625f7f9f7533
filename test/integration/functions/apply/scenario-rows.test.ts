/** The acceptance scenarios A that need more than one check of a worker. Each title begins with the number of its scenario. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { configMap, definition, deployment, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";
import { playControllers } from "#test/support/played-cluster.ts";

const worker = forEachTest(startPatientWorker);
const group = "w.example.com";
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const wave = (at: number) => ({ "argocd.argoproj.io/sync-wave": String(at) });
const dependsOn = (reference: string) => ({ "config.kubernetes.io/depends-on": reference });

function annotated(object: ManifestObject, annotations: Readonly<Record<string, string>>): ManifestObject {
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function hand(method: "POST" | "DELETE" | "PATCH", path: string, body?: JsonObject) {
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  return byHand(connection, { method, path, ...(body === undefined ? {} : { body }) });
}

/** Makes Deployments ready, and checks again, until the Sync has the phase. */
async function until(phase: string): Promise<void> {
  for (let check = 0; check < 20; check++) {
    await worker.world.work();
    if ((await worker.world.phase("web")) === phase) return;
    await playControllers(worker.host.objects("c1"), (path, body) => hand("PATCH", path, body));
    worker.world.aheadMs += 70_000;
  }
  throw new Error(`it is not ${phase}: ${JSON.stringify(await worker.observed())}`);
}

/** The objects that the worker wrote, in order: names, `-name` for a deletion. */
function written(): readonly string[] {
  return worker.host.requests().flatMap(({ method, path, status, userAgent, dryRun }) => {
    if (userAgent === "e2e-by-hand" || status >= 300 || dryRun || path.includes("starling-system")) return [];
    const name = path.split("/").at(-1) ?? "";
    return method === "PATCH" ? [name] : method === "DELETE" ? [`-${name}`] : [];
  });
}

function exists(name: string): boolean {
  return worker.host.objects("c1").some((object) => stringAt(object, "metadata", "name") === name);
}

test("A03: an object whose kind somebody deleted is forgotten when git no longer has it, and the Sync is Ready", async () => {
  await hand("POST", definitions, definition(group));
  const rest = [namespace("shop"), configMap("shop/c")];
  await worker.world.assign("web", [...rest, widget(group, "shop/w")]);
  await until("Ready");
  expect(await worker.recorded()).toEqual(["ConfigMap c", "Namespace shop", "Widget w"]);
  await hand("DELETE", `${definitions}/widgets.${group}`);
  worker.reconnect();
  await worker.world.assign("web", rest);
  await until("Ready");
  expect(await worker.recorded()).toEqual(["ConfigMap c", "Namespace shop"]);
});

test("A05: objects that were made before one is refused are recorded, and the refused one is named", async () => {
  const broken = manifest({ ...deployment("shop/web"), spec: { replicas: "three" } });
  await worker.world.assign("web", [broken, definition(group), namespace("shop")]);
  await worker.world.work();
  expect((await worker.observed()).problems).toMatchObject([{ object: "Deployment shop/web" }]);
  expect(await worker.recorded()).toEqual([`CustomResourceDefinition widgets.${group}`, "Namespace shop"]);
});

test("A09: dependencies in a circle are an error that names both objects, and nothing is written", async () => {
  const on = (name: string) => dependsOn(`/namespaces/shop/ConfigMap/${name}`);
  const circle = [annotated(configMap("shop/a"), on("b")), annotated(configMap("shop/b"), on("a"))];
  await worker.world.assign("web", [namespace("shop"), ...circle]);
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({ phase: "Failed", reason: "OrderInvalid" });
  expect((await worker.observed()).message).toMatch(/ConfigMap shop\/a.*ConfigMap shop\/b/);
  expect(worker.host.requests().filter(({ method }) => method !== "GET")).toEqual([]);
});

describe("an object that depends on another", () => {
  const after = annotated(configMap("shop/after"), dependsOn("apps/namespaces/shop/Deployment/db"));
  const both = [namespace("shop"), deployment("shop/db"), after];

  test("A10: an object is not applied while its dependency is not ready; the reason is reported, the dependency recorded", async () => {
    await worker.world.assign("web", both);
    for (let check = 0; check < 4; check++) {
      await worker.world.work();
      worker.world.aheadMs += 70_000;
    }
    expect(await worker.observed()).toMatchObject({ phase: "Applying", reason: "StepNotReady" });
    await worker.world.pause("web");
    await worker.world.work();
    expect(exists("after")).toBe(false);
    expect(await worker.recorded()).toEqual(["Deployment db", "Namespace shop"]);
  });

  test("A11: an object is not applied when git has removed its dependency, and the dependency is not deleted", async () => {
    await worker.world.assign("web", both);
    await until("Ready");
    worker.host.clearRequests();
    await worker.world.assign("web", [namespace("shop"), after]);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Failed", reason: "OrderInvalid" });
    expect(written()).toEqual([]);
    expect(exists("db")).toBe(true);
    expect(await worker.recorded()).toContain("Deployment db");
  });
});

test("A14: a definition of a later wave is sent with the first wave that needs it, and before it", async () => {
  const late = annotated(definition(group), wave(5));
  const early = annotated(widget(group, "shop/w"), wave(-1));
  await worker.world.assign("web", [late, configMap("shop/c"), early, namespace("shop")]);
  await until("Ready");
  expect(written().filter((name, index, all) => all.indexOf(name) === index)).toEqual([
    "shop",
    `widgets.${group}`,
    "w",
    "c",
  ]);
});

describe("objects that git no longer has", () => {
  const waves = [0, 1, 2].map((at) => annotated(configMap(`shop/wave-${at}`), wave(at)));

  test("A15: removed objects are pruned in the reverse order of their waves, and within a wave by kind", async () => {
    const mixed = [...waves, annotated(deployment("shop/web"), wave(0))];
    await worker.world.assign("web", [namespace("shop"), ...mixed]);
    await until("Ready");
    worker.host.clearRequests();
    await worker.world.assign("web", [namespace("shop"), configMap("shop/stays")]);
    await until("Ready");
    const deleted = written().filter((name) => name.startsWith("-"));
    expect(deleted).toEqual(["-wave-2", "-wave-1", "-web", "-wave-0"]);
  });

  test("A17: a PruneLast object stays until every wave but the last is ready; the last wave is not waited for", async () => {
    const last = { "argocd.argoproj.io/sync-options": "PruneLast=true" };
    await worker.world.assign("web", [namespace("shop"), annotated(configMap("shop/old"), last)]);
    await until("Ready");
    const next = [
      namespace("shop"),
      annotated(deployment("shop/db"), wave(1)),
      annotated(deployment("shop/new"), wave(2)),
    ];
    await worker.world.assign("web", next);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Applying", reason: "StepNotReady" });
    expect([exists("old"), exists("new")]).toEqual([true, false]);
    await playControllers(worker.host.objects("c1"), (path, body) => hand("PATCH", path, body));
    worker.world.aheadMs += 70_000;
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Verifying" });
    expect([exists("old"), exists("new")]).toEqual([false, true]);
    expect(written().indexOf("-old")).toBeGreaterThan(written().indexOf("new"));
  });
});
