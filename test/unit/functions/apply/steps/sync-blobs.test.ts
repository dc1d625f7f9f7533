/**
 * Renderings and inventories in the store: they are read once, lost and denied are told apart, and inventories are
 * stored on change.
 */
import { describe, expect, test } from "vitest";
import { findRendering, loadInventory, loadRendering, saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { emptyInventory, type Inventory } from "#shared/kube/inventory.ts";
import type { BlobStore } from "#shared/ports.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const { digest, bytes } = encodeRendering([configMap("shop/a")]);
const rendering = { install: [configMap("shop/a")], upgrade: [configMap("shop/a")] };
const denied = new StarlingError("may not be read", { code: "BlobDenied", retry: "transient" });
const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "a" };
const entry = { id, version: "v1", uid: "u", resourceVersion: "1", generation: 0, ownedHash: "", valuesHash: "" };
const inventory: Inventory = { ...emptyInventory("set-1"), entries: [entry] };

/** The store, with a list of the calls to it. */
function watched(blobs: BlobStore = new MemoryBlobStore()) {
  const calls: string[] = [];
  const store = new Proxy(blobs, {
    get(inner, name) {
      const member = (Reflect.get(inner, name) as (...args: unknown[]) => unknown).bind(inner);
      return (...args: unknown[]) => {
        calls.push(`${String(name)} ${String(args[0]).split("/")[0]}`);
        return member(...args);
      };
    },
  });
  return { store, calls };
}

const rowWith = (found?: string) => syncRowOf("c1", { observed: found === undefined ? {} : { inventory: found } });
const save = (store: BlobStore, saved: Inventory, found?: string) =>
  saveInventory({ row: rowWith(found), ports: { blobs: store } as never }, saved);

describe("a rendering in the store", () => {
  test("a rendering is read once, however often it is needed", async () => {
    const { store, calls } = watched();
    await store.overwrite(blobKeys.rendering(digest), bytes);
    calls.length = 0;
    for (let check = 0; check < 3; check++) expect(await loadRendering(digest, store)).toEqual(rendering);
    expect(await findRendering(digest, store)).toEqual(rendering);
    expect(calls).toEqual(["get renderings"]);
  });

  test.each<[string, (blobs: BlobStore) => Promise<unknown>]>([
    ["does not exist", async () => {}],
    ["was changed", (blobs) => blobs.overwrite(blobKeys.rendering(digest), Buffer.from("[]"))],
  ])("a rendering that %s is lost, and can be made again", async (_what, lose) => {
    const blobs = new MemoryBlobStore();
    await lose(blobs);
    await expect(loadRendering(digest, blobs)).rejects.toMatchObject({
      code: "RenderingLost",
      retry: "transient",
      data: { digest },
      message: expect.stringContaining(`the rendering ${digest} is lost`),
      cause: { code: expect.stringMatching(/^Blob(NotFound|Corrupt)$/) },
    });
    expect(await findRendering(digest, blobs)).toBeUndefined();
    await blobs.overwrite(blobKeys.rendering(digest), bytes);
    expect(await findRendering(digest, blobs)).toEqual(rendering);
  });

  test("a rendering that may not be read is denied, and not lost", async () => {
    const blobs: BlobStore = Object.assign(new MemoryBlobStore(), { get: () => Promise.reject(denied) });
    await expect(loadRendering(digest, blobs)).rejects.toBe(denied);
    await expect(findRendering(digest, blobs)).rejects.toBe(denied);
  });
});

describe("an inventory in the store", () => {
  test("an inventory that was never stored is empty, and one that is lost is an error", async () => {
    const { store, calls } = watched();
    expect(await loadInventory(syncRowOf("c1"), "set-1", store)).toEqual(emptyInventory("set-1"));
    expect(calls).toEqual([]);
    await expect(loadInventory(rowWith(digest), "set-1", store)).rejects.toMatchObject({ code: "BlobNotFound" });
    await store.overwrite(blobKeys.inventory("c1", digest), Buffer.from("{}"));
    await expect(loadInventory(rowWith(digest), "set-1", store)).rejects.toMatchObject({ code: "BlobCorrupt" });
  });

  test.each([
    ["with objects", inventory],
    ["without objects", emptyInventory("set-1")],
  ])("an inventory %s is not read by the process that stored it, and once by another process", async (_what, saved) => {
    const { store, calls } = watched();
    const written = await save(store, saved);
    expect(written).toMatch(/^sha256:/);
    expect(calls).toEqual(["overwrite inventories"]);
    expect(await loadInventory(rowWith(written), "set-1", store)).toEqual(saved);
    expect(calls).toHaveLength(1);

    // Another sandbox reads the store.
    const other = watched(store);
    for (let check = 0; check < 3; check++) {
      expect(await loadInventory(rowWith(written), "set-1", other.store)).toEqual(saved);
    }
    expect(other.calls).toEqual(["get inventories"]);
  });

  test("an inventory is stored only when it has changed", async () => {
    const { store, calls } = watched();
    const written = await save(store, inventory);
    expect(await save(store, inventory, written)).toBeUndefined();
    expect(calls).toHaveLength(1);
    const next = await save(store, { ...inventory, entries: [{ ...entry, resourceVersion: "2" }] }, written);
    expect(next).not.toBe(written);
    expect(calls).toHaveLength(2);
  });

  test("an inventory of another set is refused, also when it was read before", async () => {
    const { store } = watched();
    const written = await save(store, inventory);
    expect(await loadInventory(rowWith(written), "set-1", store)).toEqual(inventory);
    await expect(loadInventory(rowWith(written), "set-2", store)).rejects.toThrow(/set/);
  });

  test("each cluster has an inventory of its own", async () => {
    const blobs = new MemoryBlobStore();
    const written = await save(blobs, inventory);
    const elsewhere = { ...rowWith(written), cluster: "c2" };
    await expect(loadInventory(elsewhere, "set-1", blobs)).rejects.toMatchObject({ code: "BlobNotFound" });
  });
});
