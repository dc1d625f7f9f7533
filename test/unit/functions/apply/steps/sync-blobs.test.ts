/** What is read once is believed, what is lost is told from what may not be read, and what is written is read back. */
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

/** The store, with what was asked of it. */
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

describe("a rendering", () => {
  test("is read once, however often it is wanted", async () => {
    const { store, calls } = watched();
    await store.overwrite(blobKeys.rendering(digest), bytes);
    calls.length = 0;
    for (let check = 0; check < 3; check++) expect(await loadRendering(digest, store)).toEqual(rendering);
    expect(await findRendering(digest, store)).toEqual(rendering);
    expect(calls).toEqual(["get renderings"]);
  });

  test.each<[string, (blobs: BlobStore) => Promise<unknown>]>([
    ["is not there", async () => {}],
    ["was changed", (blobs) => blobs.overwrite(blobKeys.rendering(digest), Buffer.from("[]"))],
  ])("that %s is lost, and can be made again", async (_what, lose) => {
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

  test("that may not be read is not lost", async () => {
    const blobs: BlobStore = { ...watched().store, get: () => Promise.reject(denied) };
    await expect(loadRendering(digest, blobs)).rejects.toBe(denied);
    await expect(findRendering(digest, blobs)).rejects.toBe(denied);
  });
});

describe("an inventory", () => {
  test("that there never was is empty; one that is lost is not", async () => {
    const { store, calls } = watched();
    expect(await loadInventory(syncRowOf("c1"), "set-1", store)).toEqual(emptyInventory("set-1"));
    expect(calls).toEqual([]);
    await expect(loadInventory(rowWith(digest), "set-1", store)).rejects.toMatchObject({ code: "BlobNotFound" });
    await store.overwrite(blobKeys.inventory("c1", digest), Buffer.from("{}"));
    await expect(loadInventory(rowWith(digest), "set-1", store)).rejects.toMatchObject({ code: "BlobCorrupt" });
  });

  test.each([
    ["with objects", inventory],
    ["of nothing", emptyInventory("set-1")],
  ])("%s is read back, and not again, by who wrote it and by others", async (_what, saved) => {
    const { store, calls } = watched();
    const written = await save(store, saved);
    expect(written).toMatch(/^sha256:/);
    expect(calls).toEqual(["overwrite inventories"]);
    expect(await loadInventory(rowWith(written), "set-1", store)).toEqual(saved);
    expect(calls).toHaveLength(1);

    // As another sandbox finds it.
    const other = watched(store);
    for (let check = 0; check < 3; check++) {
      expect(await loadInventory(rowWith(written), "set-1", other.store)).toEqual(saved);
    }
    expect(other.calls).toEqual(["get inventories"]);
  });

  test("is written when it has changed, and only then", async () => {
    const { store, calls } = watched();
    const written = await save(store, inventory);
    expect(await save(store, inventory, written)).toBeUndefined();
    expect(calls).toHaveLength(1);
    const next = await save(store, { ...inventory, entries: [{ ...entry, resourceVersion: "2" }] }, written);
    expect(next).not.toBe(written);
    expect(calls).toHaveLength(2);
  });

  test("of another set is refused, also when it was read before", async () => {
    const { store } = watched();
    const written = await save(store, inventory);
    expect(await loadInventory(rowWith(written), "set-1", store)).toEqual(inventory);
    await expect(loadInventory(rowWith(written), "set-2", store)).rejects.toThrow(/set/);
  });

  test("is kept for each cluster", async () => {
    const blobs = new MemoryBlobStore();
    const written = await save(blobs, inventory);
    const elsewhere = { ...rowWith(written), cluster: "c2" };
    await expect(loadInventory(elsewhere, "set-1", blobs)).rejects.toMatchObject({ code: "BlobNotFound" });
  });
});
