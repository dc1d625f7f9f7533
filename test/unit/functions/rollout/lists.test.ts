import { expect, test } from "vitest";
import { listsIn } from "#functions/rollout/read/planner-ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

test("a list is read and parsed once, however many steps need a page of it", async () => {
  const stored = new MemoryBlobStore();
  const key = await listsIn(stored).store(["a", "b"]);
  let gets = 0;
  const lists = listsIn({
    renew: (name, before) => stored.renew(name, before),
    overwrite: (name, bytes) => stored.overwrite(name, bytes),
    get(name) {
      gets++;
      return stored.get(name);
    },
  });
  const first = await lists.read(key);
  expect(first).toEqual(["a", "b"]);
  // It is the same array: nothing was parsed for it.
  expect(await lists.read(key)).toBe(first);
  expect(gets).toBe(1);
});

test("a list that was missing is read again, and is found when it has been stored again", async () => {
  const stored = new MemoryBlobStore();
  const lists = listsIn(stored);
  const key = await lists.store(["a"]);
  stored.lose(key);
  await expect(lists.read(key)).rejects.toMatchObject({ code: "BlobNotFound" });
  await lists.store(["a"]);
  expect(await lists.read(key)).toEqual(["a"]);
});
