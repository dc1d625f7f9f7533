import { expect, test } from "vitest";
import { desiredPart, placesIn, unrecordedIds } from "#functions/apply/steps/rendering-places.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { emptyInventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { BlobStore } from "#shared/ports.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { desiredOf } from "#test/support/sync-rows.ts";

const id = (name: string, inNamespace = "shop") => ({ group: "", kind: "ConfigMap", namespace: inNamespace, name });
const homeless: ManifestObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "homeless" } };

async function rendered(blobs: BlobStore, ...objects: readonly ManifestObject[]): Promise<string> {
  const { digest, bytes } = encodeRendering(objects);
  await blobs.overwrite(blobKeys.rendering(digest), bytes);
  return digest;
}

/** The keys of the objects that are to stay. */
const staying = (...objects: readonly ManifestObject[]) => ({ desired: placesIn(objects, undefined) });

test("the ids of earlier renderings are every possible place of each object once, without the objects that are to stay", async () => {
  const blobs = new MemoryBlobStore();
  const first = await rendered(blobs, configMap("shop/a"), configMap("shop/b"));
  const second = await rendered(blobs, configMap("shop/b"), configMap("shop/c"), homeless);
  const desired = placesIn([configMap("shop/a")], undefined);
  const found = await unrecordedIds([first, second], { desired, defaultNamespace: "team" }, blobs);
  expect(found).toEqual({
    ids: [id("b"), id("b", ""), id("c"), id("c", ""), id("homeless", ""), id("homeless", "team")],
    lost: [],
  });
});

test("an object without a namespace stays when it is desired in the Sync's namespace", async () => {
  const blobs = new MemoryBlobStore();
  const digest = await rendered(blobs, homeless);
  const elsewhere = configMap("team/homeless");
  const find = (defaultNamespace: string | undefined) =>
    unrecordedIds([digest], { desired: new Set(["/ConfigMap/team/homeless"]), defaultNamespace }, blobs);
  expect(elsewhere.metadata.namespace).toBe("team");
  expect((await find("team")).ids).toEqual([]);
  expect((await find(undefined)).ids).toEqual([id("homeless", "")]);
});

test("a rendering that is lost is named, and one that may not be read is an error", async () => {
  const blobs = new MemoryBlobStore();
  const there = await rendered(blobs, configMap("shop/a"));
  const lost = `sha256:${"0".repeat(64)}`;
  const none = { ...staying(), defaultNamespace: undefined };
  expect(await unrecordedIds([lost, there], none, blobs)).toEqual({ ids: [id("a"), id("a", "")], lost: [lost] });
  const denied = new StarlingError("may not be read", { code: "BlobDenied", retry: "transient" });
  const closed: BlobStore = { ...new MemoryBlobStore(), get: () => Promise.reject(denied) } as never;
  await expect(unrecordedIds([there], none, closed)).rejects.toBe(denied);
});

test("the desired part of an inventory has the objects of the rendering, and the whole inventory when the Sync prunes or is deleted", async () => {
  const blobs = new MemoryBlobStore();
  const entryOf = (of: InventoryEntry["id"]): InventoryEntry => ({
    ...{ id: of, version: "v1", uid: of.name, resourceVersion: "1", generation: 0, ownedHash: "", valuesHash: "" },
  });
  const place = { group: "", kind: "Namespace", namespace: "", name: "shop" };
  const entries = [entryOf(id("a")), entryOf(id("homeless", "team")), entryOf(id("kept")), entryOf(place)];
  const inventory = { ...emptyInventory("set"), entries };
  const renderDigest = await rendered(blobs, configMap("shop/a"), homeless, namespace("shop"));
  const namesFor = async (desired: Parameters<typeof desiredOf>[0]) => {
    const part = await desiredPart({ desired: desiredOf({ renderDigest, ...desired }) }, inventory, blobs);
    return part.entries.map(({ uid }) => uid);
  };
  const { apply } = desiredOf({});
  const keeping = { ...apply, prune: false };
  expect(await namesFor({ apply: { ...apply, prune: true } })).toEqual(["a", "homeless", "kept", "shop"]);
  expect(await namesFor({ apply: { ...keeping, defaultNamespace: "team" } })).toEqual(["a", "homeless", "shop"]);
  expect(await namesFor({ apply: keeping })).toEqual(["a", "shop"]);
  const { renderDigest: _, ...deleting } = desiredOf({ action: "delete", apply: keeping });
  expect((await desiredPart({ desired: deleting }, inventory, blobs)).entries).toHaveLength(4);
});
