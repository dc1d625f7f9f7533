/** The objects of a Sync, from what its worker recorded. */
import { expect, test } from "vitest";
import { sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory, type InventoryEntry, writeInventory } from "#shared/kube/inventory.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import {
  type Answer,
  type ApiFixture,
  apiFixture,
  cluster,
  source,
  sync,
} from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/namespaces/payments/syncs/shop.web/objects?cluster=c1";

function entry(kind: string, name: string, more: Partial<InventoryEntry> = {}): InventoryEntry {
  return {
    id: { group: kind === "Deployment" ? "apps" : "", kind, namespace: "shop", name },
    version: "v1",
    uid: `uid-${name}`,
    resourceVersion: "7",
    generation: 1,
    createdAt: "2026-11-20T06:00:00Z",
    ownedHash: "sha256:0a11",
    valuesHash: "sha256:5ec2e7",
    ...more,
  };
}

async function holding(
  entries: readonly InventoryEntry[],
  observed: Partial<Observed>,
  name = "shop.web",
): Promise<ApiFixture> {
  const api = apiFixture();
  const setId = setIdOf({ syncNamespace: "payments", syncName: name });
  const text = writeInventory({ ...emptyInventory(setId), entries });
  await api.blobs.overwrite(blobKeys.inventory("c1", sha256(text)), Buffer.from(text));
  const row = syncRow("c1", name);
  if (row.observed === undefined) throw new Error("the fixture has one");
  const seen = { ...row.observed, ...observed, inventory: sha256(text) };
  const put: SyncRow = { ...row, observed: seen };
  await api.table.write([{ put }]);
  return api;
}

const said = (body: Answer) => body.items.map(({ object, health }: Answer) => `${object} ${health}`);

test("each object has its kind, health and age; unhealthy objects come first, and no digest of a Secret is shown", async () => {
  const api = await holding([entry("ConfigMap", "settings"), entry("Secret", "token"), entry("Deployment", "web")], {
    phase: "Verifying",
    objects: { total: 3, ready: 2, failed: 0, foreign: 0 },
    problems: [{ object: "Deployment shop/web", reason: "NotReady", message: "0/1 available" }],
  });
  const { status, body } = await api.call("GET", path);
  expect(status).toBe(200);
  expect(said(body)).toEqual([
    "Deployment shop/web NotReady",
    "ConfigMap shop/settings Ready",
    "Secret shop/token Ready",
  ]);
  expect(body.items[0]).toEqual({
    object: "Deployment shop/web",
    kind: "Deployment",
    group: "apps",
    version: "v1",
    namespace: "shop",
    name: "web",
    uid: "uid-web",
    health: "NotReady",
    reason: "NotReady",
    message: "0/1 available",
    createdAt: "2026-11-20T06:00:00Z",
    seenAt: "2026-11-20T07:59:00.000Z",
  });
  expect(JSON.stringify(body)).not.toMatch(/5ec2e7|0a11/);
});

test("objects are Unknown when more are not ready than the row names, and none of them is called Ready", async () => {
  const api = await holding([entry("ConfigMap", "a"), entry("Deployment", "b"), entry("Deployment", "c")], {
    phase: "Failed",
    applied: { renderDigest: "sha256:77ab", revision: "r1", attempt: 1, at: "2026-11-20T07:00:00.000Z" },
    objects: { total: 3, ready: 1, failed: 2, foreign: 0 },
    problems: [{ object: "Deployment shop/b", reason: "Failed", message: "" }],
  });
  const { body } = await api.call("GET", path);
  expect(said(body)).toEqual(["Deployment shop/b NotReady", "ConfigMap shop/a Unknown", "Deployment shop/c Unknown"]);
  expect(body.items[1].message).toBe("1 more of 3 objects are not ready, and not named");
});

test("objects are NotChecked while not everything is applied", async () => {
  const api = await holding([entry("ConfigMap", "a"), entry("ConfigMap", "b")], {
    phase: "Retrying",
    applied: { renderDigest: "sha256:before", revision: "r1", attempt: 1, at: "2026-11-20T07:00:00.000Z" },
    objects: { total: 3, ready: 0, failed: 1, foreign: 0 },
    problems: [{ object: "ConfigMap nowhere/c", reason: "NotFound", message: "there is no Namespace nowhere" }],
  });
  const { body } = await api.call("GET", path);
  expect(body.items.map(({ object, reason }: Answer) => `${object} ${reason}`)).toEqual([
    "ConfigMap nowhere/c NotFound",
    "ConfigMap shop/a NotChecked",
    "ConfigMap shop/b NotChecked",
  ]);
});

test("objects of an unreachable cluster are Unknown", async () => {
  const api = await holding([entry("ConfigMap", "a")], { phase: "Unreachable" });
  expect(said((await api.call("GET", path)).body)).toEqual(["ConfigMap shop/a Unknown"]);
});

test("an object that could not be applied is listed, although no inventory has it", async () => {
  const api = await holding([], {
    phase: "Failed",
    problems: [
      { object: "Service shop/web", reason: "Invalid", message: "port is taken" },
      { object: "3 objects", reason: "Forbidden", message: "of several kinds" },
    ],
  });
  expect(said((await api.call("GET", path)).body)).toEqual(["Service shop/web NotReady"]);
});

test("drift that stays is listed with its fields, and a correction with who undoes it", async () => {
  const undone = { rounds: 1, inAll: 2, state: "x", by: "kubectl-edit", fields: "spec.replicas" };
  const api = await holding([entry("Deployment", "web"), entry("ConfigMap", "put-back", { undone })], {
    drift: {
      at: "2026-11-20T07:58:00.000Z",
      objects: 1,
      corrected: false,
      named: [{ object: "Deployment shop/web", reason: "Changed", message: "spec.replicas, by kubectl-edit" }],
    },
    conditions: [
      {
        ...{ type: "Drifted", status: "True", reason: "DriftDetected", message: "" },
        since: "2026-11-20T07:58:00.000Z",
      },
    ],
  });
  const { body } = await api.call("GET", path);
  expect(body.items).toMatchObject([
    { object: "Deployment shop/web", health: "Drifted", reason: "Changed", message: "spec.replicas, by kubectl-edit" },
    {
      object: "ConfigMap shop/put-back",
      health: "Ready",
      corrected: { times: 2, fields: "spec.replicas", by: "kubectl-edit" },
    },
  ]);
});

test("pages go on where the last one ended, also when the worst object has become healthy meanwhile", async () => {
  const entries = Array.from({ length: 7 }, (_, index) => entry("ConfigMap", `m${index}`));
  const api = await holding(entries, {});
  const names: string[] = [];
  for (let next = ""; ; ) {
    const { body } = await api.call("GET", `${path}&limit=3${next}`);
    names.push(...body.items.map(({ name }: Answer) => name));
    if (body.metadata.continue === undefined) break;
    next = `&continue=${body.metadata.continue}`;
  }
  expect(names).toEqual(["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
});

test("a lost inventory is an error, and not an empty list", async () => {
  const api = await holding([entry("ConfigMap", "a")], {});
  const row = syncRow("c1", "shop.web");
  if (row.observed === undefined) throw new Error("the fixture has one");
  const put: SyncRow = { ...row, observed: { ...row.observed, inventory: sha256("gone") } };
  await api.table.write([{ put }]);
  const { status, body } = await api.call("GET", path);
  expect(status).not.toBe(200);
  expect(body.items).toBeUndefined();
});

test("the objects of a group's Sync need a cluster in the request, and those of a user's Sync do not", async () => {
  const api = apiFixture();
  expect((await api.call("GET", "/v1/namespaces/payments/syncs/shop.web/objects")).status).toBe(400);
  expect((await api.call("GET", path)).status).toBe(404);
  expect((await api.call("GET", "/v1/namespaces/payments/syncs/one/objects")).status).toBe(404);
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1"), sync("one", { cluster: "c1", source: "app" })],
  });
  const unassigned = await api.call("GET", "/v1/namespaces/payments/syncs/one/objects");
  expect(unassigned).toMatchObject({ status: 200, body: { kind: "SyncObjectList", items: [] } });
});
