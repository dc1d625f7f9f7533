import { expect, test } from "vitest";
import { footprintOfClusters } from "#test/support/idle-clusters.ts";

const megabyte = 1024 * 1024;

test("hundreds of clusters fit into one process: an idle one weighs less than 3 MB", { timeout: 120_000 }, async () => {
  const { fresh, used } = await footprintOfClusters(60);
  expect(fresh.heapBytes).toBeLessThan(megabyte / 4);
  expect(used.heapBytes).toBeLessThan(megabyte);
  expect(used.rssBytes).toBeLessThan(3 * megabyte);
});
