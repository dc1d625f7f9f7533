/** A search from an object of a cluster to the Sync that holds it, in the records of workers. */
import { expect, test } from "vitest";
import { sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory, type InventoryEntry, writeInventory } from "#shared/kube/inventory.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { type Answer, type ApiFixture, apiFixture, cluster } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

function entry(kind: string, name: string): InventoryEntry {
  return {
    id: { group: "", kind, namespace: "shop", name },
    version: "v1",
    uid: `uid-${name}`,
    resourceVersion: "7",
    generation: 1,
    ownedHash: "sha256:0a11",
    valuesHash: "sha256:5ec2e7",
  };
}

async function holds(api: ApiFixture, name: string, entries: readonly InventoryEntry[]): Promise<void> {
  const setId = setIdOf({ syncNamespace: "payments", syncName: name });
  const text = writeInventory({ ...emptyInventory(setId), entries });
  await api.blobs.overwrite(blobKeys.inventory("c1", sha256(text)), Buffer.from(text));
  const row = syncRow("c1", name);
  if (row.observed === undefined) throw new Error("the fixture has one");
  const applied = { renderDigest: "sha256:77ab", revision: "main@sha1:9f2c1ab", attempt: 2, at: row.observed.at };
  const put: SyncRow = { ...row, observed: { ...row.observed, applied, inventory: sha256(text) } };
  await api.table.write([{ put }]);
}

async function fleet(): Promise<ApiFixture> {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
  await holds(api, "shop.web", [entry("ConfigMap", "settings"), entry("Service", "web")]);
  await holds(api, "shop.worker", [entry("ConfigMap", "queue-settings")]);
  await holds(api, "agent", [entry("DaemonSet", "agent")]);
  return api;
}

async function owners(api: ApiFixture, object: string): Promise<readonly string[]> {
  const found: string[] = [];
  let next: string | undefined;
  do {
    const more: string = next === undefined ? "" : `&continue=${encodeURIComponent(next)}`;
    const path = `/v1/clusters/c1/objects?limit=1&object=${encodeURIComponent(object)}${more}`;
    const { status, body } = await api.call("GET", path);
    expect(status).toBe(200);
    for (const { object: name, sync, revision } of body.items as Answer[])
      found.push(`${name} of ${sync.group ?? "-"}, ${sync.namespace}/${sync.name}, at ${revision}`);
    next = body.metadata.continue;
  } while (next !== undefined);
  return found.sort();
}

test("the search names each object with its Sync, that Sync's group and its revision, whatever the size of the pages", async () => {
  const api = await fleet();
  const [web, worker] = await Promise.all([owners(api, "service shop/web"), owners(api, "SETTINGS")]);
  expect(web).toEqual([expect.stringMatching(/^Service shop\/web of shop, payments\/shop\.web, at main@/)]);
  expect(worker.map((line) => line.split(",")[0])).toEqual([
    "ConfigMap shop/queue-settings of shop",
    "ConfigMap shop/settings of shop",
  ]);
  expect((await owners(api, "agent")).map((line) => line.split(",")[0])).toEqual(["DaemonSet shop/agent of -"]);
  expect(await owners(api, "nobody's")).toEqual([]);
});

test("a Sync whose record is lost hides no other Sync, and is listed as one that may hold the object", async () => {
  const api = await fleet();
  const row = syncRow("c1", "shop.lost");
  if (row.observed === undefined) throw new Error("the fixture has one");
  const put: SyncRow = { ...row, observed: { ...row.observed, inventory: sha256("gone") } };
  await api.table.write([{ put }]);
  expect((await owners(api, "agent")).map((line) => line.split(",")[0])).toEqual([
    "? of shop",
    "DaemonSet shop/agent of -",
  ]);
});

test.each([
  ["an unregistered cluster", "/v1/clusters/c9/objects?object=web", 404, /c9 does not exist/],
  ["no object", "/v1/clusters/c1/objects", 400, /two letters/],
  ["one letter", "/v1/clusters/c1/objects?object=w", 400, /two letters/],
])("a search with %s is refused", async (_what, path, status, message) => {
  const answer = await (await fleet()).call("GET", path);
  expect(answer).toMatchObject({ status, body: { message: expect.stringMatching(message) } });
});
