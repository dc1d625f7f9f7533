/** Marks on objects say that they are made once, left alone or shared. The tests check the objects in the cluster. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { type ManifestObject, valueAt } from "#shared/kube/kube-object.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand, type KubeCall } from "#test/support/kube-call.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

const worker = forEachTest(startPatientWorker);
const ssa = "kustomize.toolkit.fluxcd.io/ssa";
const reconcile = "kustomize.toolkit.fluxcd.io/reconcile";

function marked(object: ManifestObject, mark: readonly [name: string, value: string]): ManifestObject {
  const [name, value] = mark;
  return { ...object, metadata: { ...object.metadata, annotations: { [name]: value } } };
}

const pathOf = (name: string) => `/api/v1/namespaces/shop/configmaps/${name}`;

function hand(call: KubeCall) {
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  return byHand(connection, call);
}

/** Changes or makes an object as another writer. */
const patch = (name: string, body: object) =>
  hand({ method: "PATCH", path: `${pathOf(name)}?fieldManager=them`, body });
const make = (name: string, data: object, metadata: object = {}) =>
  hand({
    method: "POST",
    path: "/api/v1/namespaces/shop/configmaps",
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data },
  });

function dataOf(name: string): unknown {
  return valueAt(
    worker.host.objects("c1").find((object) => valueAt(object, "metadata", "name") === name) ?? {},
    "data",
  );
}

/** How often Starling wrote to an object, or deleted it. */
function writesTo(name: string): number {
  return worker.host
    .requests()
    .filter(({ method, path, userAgent }) => method !== "GET" && path === pathOf(name) && userAgent !== "e2e-by-hand")
    .length;
}

async function apply(...objects: readonly ManifestObject[]): Promise<void> {
  await worker.world.assign("web", [namespace("shop"), ...objects]);
  await settle();
}

async function settle(): Promise<void> {
  for (let check = 0; check < 6; check++) {
    await worker.world.work();
    worker.world.aheadMs += 70_000;
    if ((await worker.world.phase("web")) === "Ready") return;
  }
  throw new Error(`it is not Ready: ${JSON.stringify((await worker.observed()).message)}`);
}

/** Lets the interval pass, and has the Sync checked. */
async function later(): Promise<void> {
  worker.world.aheadMs += 700_000;
  await settle();
}

describe.each([
  ["kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"],
  ["starling.dev/apply", "ifnotpresent"],
] as const)("an object with the mark %s: %s", (...mark) => {
  test("the object is made where it is missing, and never written to afterwards", async () => {
    await apply(marked(configMap("shop/made", { k: "1" }), mark));
    expect([dataOf("made"), writesTo("made")]).toEqual([{ k: "1" }, 1]);
    await patch("made", { data: { k: "theirs" } });
    await later();
    await apply(marked(configMap("shop/made", { k: "2" }), mark));
    expect([dataOf("made"), writesTo("made")]).toEqual([{ k: "theirs" }, 1]);
    // The check still requires that the object exists.
    await hand({ method: "DELETE", path: pathOf("made") });
    await later();
    expect([dataOf("made"), writesTo("made")]).toEqual([{ k: "2" }, 2]);
    expect(await worker.recorded()).toEqual(["ConfigMap made", "Namespace shop"]);
    await apply(configMap("shop/other"));
    expect(worker.members()).toEqual(["ConfigMap other", "Namespace shop"]);
  });

  test("an object that exists already is left unchanged, whoever owns it, and is never deleted later", async () => {
    await apply(configMap("shop/first"));
    const ofFlux = { labels: { "kustomize.toolkit.fluxcd.io/name": "apps" } };
    await make("theirs", { k: "theirs" }, ofFlux);
    await make("nobodys", { k: "nobodys" });
    await apply(...["theirs", "nobodys"].map((name) => marked(configMap(`shop/${name}`, { k: "1" }), mark)));
    await later();
    expect([dataOf("theirs"), dataOf("nobodys")]).toEqual([{ k: "theirs" }, { k: "nobodys" }]);
    await apply(configMap("shop/first"));
    expect([writesTo("theirs"), writesTo("nobodys")]).toEqual([0, 0]);
    expect(await worker.recorded()).toEqual(["ConfigMap first", "Namespace shop"]);
  });

  test("a deleted object is made again, also by a Sync that had found it in the cluster", async () => {
    const { world } = worker;
    await apply(marked(configMap("shop/both", { k: "first" }), mark));
    await make("nobodys", { k: "nobodys" });
    const ofSecond = [configMap("shop/both", { k: "second" }), configMap("shop/nobodys", { k: "second" })];
    await world.assign(
      "second",
      ofSecond.map((object) => marked(object, mark)),
    );
    await later();
    expect([dataOf("both"), dataOf("nobodys")]).toEqual([{ k: "first" }, { k: "nobodys" }]);
    await later();
    // The check requires only that they exist, so their other contents are no drift.
    expect([writesTo("both"), writesTo("nobodys")]).toEqual([1, 0]);
    expect((await worker.observed("second")).drift).toBeUndefined();

    await hand({ method: "DELETE", path: pathOf("nobodys") });
    await apply(configMap("shop/first"));
    await later();
    expect([dataOf("both"), dataOf("nobodys")]).toEqual([{ k: "second" }, { k: "second" }]);
    // The objects belong now to the Sync that made them.
    await world.assign("second", [configMap("shop/rest")]);
    await later();
    expect([dataOf("both"), dataOf("nobodys")]).toEqual([undefined, undefined]);
  });
});

describe.each([
  [reconcile, "Disabled"],
  [ssa, "ignore"],
] as const)("an object with the mark %s: %s", (...mark) => {
  test("the object is not made, changed, restored or deleted if the mark is in git", async () => {
    await apply(configMap("shop/had", { k: "1" }));
    const left = (value: string) => ["had", "new"].map((name) => marked(configMap(`shop/${name}`, { k: value }), mark));
    await apply(...left("2"));
    await patch("had", { data: { k: "theirs" } });
    await later();
    expect([dataOf("had"), writesTo("had"), dataOf("new")]).toEqual([{ k: "theirs" }, 1, undefined]);
    expect(await worker.recorded()).toEqual(["ConfigMap had", "Namespace shop"]);
    await apply(configMap("shop/had", { k: "3" }));
    expect([dataOf("had"), writesTo("had")]).toEqual([{ k: "3" }, 2]);
  });

  test("the object is neither applied nor restored until somebody removes the mark in the cluster", async () => {
    await apply(configMap("shop/held", { k: "1" }), configMap("shop/other", { k: "1" }));
    const [name, value] = mark;
    await patch("held", { metadata: { annotations: { [name]: value } }, data: { k: "theirs" } });
    await later();
    await apply(configMap("shop/held", { k: "2" }), configMap("shop/other", { k: "2" }));
    await later();
    await apply(configMap("shop/held", { k: "3" }), configMap("shop/other", { k: "3" }));
    expect([dataOf("held"), writesTo("held") > 0, dataOf("other")]).toEqual([{ k: "theirs" }, true, { k: "3" }]);
    await patch("held", { metadata: { annotations: { [name]: null } } });
    await later();
    expect(dataOf("held")).toEqual({ k: "3" });
    // A Sync without a record of the object does not take it for its own either.
    await patch("held", { metadata: { annotations: { [name]: value } }, data: { k: "theirs" } });
    await apply(configMap("shop/other", { k: "3" }));
    expect(dataOf("held")).toEqual({ k: "theirs" });
  });
});

test("fields that only kubectl set stay on a shared object, and are removed from an object that is not shared", async () => {
  const edit = (name: string) =>
    hand({
      method: "PATCH",
      path: `${pathOf(name)}?fieldManager=kubectl-edit`,
      body: { data: { more: "x" } } as JsonObject,
    });
  await apply(marked(configMap("shop/shared", { k: "1" }), [ssa, "Merge"]), configMap("shop/own", { k: "1" }));
  await edit("shared");
  await edit("own");
  await apply(marked(configMap("shop/shared", { k: "2" }), [ssa, "Merge"]), configMap("shop/own", { k: "2" }));
  expect([dataOf("shared"), dataOf("own")]).toEqual([{ k: "2", more: "x" }, { k: "2" }]);
});

test.each([
  [ssa, "Ignore"],
  [reconcile, "disabled"],
] as const)(
  "an inventory that is rebuilt does not report an object with the mark %s: %s as missing",
  async (...mark) => {
    const { world } = worker;
    await apply(configMap("shop/had"), marked(configMap("shop/left"), mark));
    const { inventory = "" } = await worker.observed();
    const blobs = world.blobs as MemoryBlobStore;
    blobs.lose(blobKeys.inventory("c1", inventory));
    // The worker runs in another sandbox, which has read nothing yet.
    const unread = new Proxy(blobs, { get: (inner, name) => Reflect.get(inner, name).bind(inner) });
    for (let checks = 0; checks < 3; checks++) {
      world.aheadMs += 700_000;
      await world.work({ blobs: unread });
    }
    expect(await worker.recorded()).toEqual(["ConfigMap had", "Namespace shop"]);
    expect(await world.phase("web")).toBe("Ready");
    expect(writesTo("left")).toBe(0);
  },
);
