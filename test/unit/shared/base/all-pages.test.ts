import { expect, test } from "vitest";
import { allItems, allPages, type PageStart } from "#shared/base/all-pages.ts";

/** Three pages: two items, none, one; and the requests that were made. */
function threePages() {
  const asked: PageStart[] = [];
  const pages: Readonly<Record<string, { items: readonly string[]; next?: string }>> = {
    first: { items: ["a", "b"], next: "second" },
    second: { items: [], next: "third" },
    third: { items: ["c"] },
  };
  const list = async (start: PageStart) => {
    asked.push(start);
    return pages[start.after ?? "first"] ?? { items: [] };
  };
  return { asked, list };
}

test("every page is read once, in order, also an empty one", async () => {
  const { asked, list } = threePages();
  expect(await Array.fromAsync(allPages(list))).toEqual([["a", "b"], [], ["c"]]);
  expect(asked).toEqual([{}, { after: "second" }, { after: "third" }]);
});

test("allItems yields the items of all pages", async () => {
  expect(await Array.fromAsync(allItems(threePages().list))).toEqual(["a", "b", "c"]);
});

test.each([
  { taken: 1, requests: 1 },
  { taken: 2, requests: 1 },
  { taken: 3, requests: 3 },
])("a reader that stops after item $taken has asked for $requests pages", async ({ taken, requests }) => {
  const { asked, list } = threePages();
  let left = taken;
  for await (const _item of allItems(list)) if (--left === 0) break;
  expect(asked).toHaveLength(requests);
});

test("a page that fails ends the list with its error", async () => {
  const items: string[] = [];
  const list = async ({ after }: PageStart) => {
    if (after !== undefined) throw new Error("the second page failed");
    return { items: ["a"], next: "more" };
  };
  const read = async () => {
    for await (const item of allItems(list)) items.push(item);
  };
  await expect(read()).rejects.toThrow("the second page failed");
  expect(items).toEqual(["a"]);
});
