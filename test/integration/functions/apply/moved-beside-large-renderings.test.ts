/** Objects move in a group with a rendering that is too large for the worker's memory: a check reads it only once. */
import { describe, expect, test } from "vitest";
import { stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const soonMs = 70_000;
/** More than the 24 MiB of text that a worker remembers of renderings. */
const largeBytes = 25 * 1024 * 1024;
const moving = 20;

/** Counts the reads of large blobs, and the most reads at the same time. */
class LargeReads extends MemoryBlobStore {
  count = 0;
  atOnce = 0;
  #open = 0;

  override async get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array> {
    const bytes = await super.get(key, limits);
    if (bytes.length < largeBytes) return bytes;
    this.count += 1;
    this.#open += 1;
    this.atOnce = Math.max(this.atOnce, this.#open);
    await new Promise(setImmediate);
    this.#open -= 1;
    return bytes;
  }
}

describe.each(clusterTargets)("a group that has a template with a large rendering, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  test("the objects of a renamed template move, and the large rendering is not read for each of them", async () => {
    const blobs = new LargeReads();
    const connector = { connect: async () => cluster.client, distrust() {} };
    const world = await new WorkerWorld(connector, blobs).begin();
    const group = "large";
    const objects = Array.from({ length: moving }, (_, index) => configMap(`moved-large/c-${index}`));
    await world.assign("large-space", [namespace("moved-large")], {}, { group });
    await world.assign("large-a", objects, {}, { group });
    const workOn = async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        await world.work();
        world.aheadMs += soonMs;
      }
    };
    await workOn();
    const uids = () =>
      Promise.all(
        objects.map(async ({ metadata: { name } }) => {
          const found = await cluster.raw("GET", `/api/v1/namespaces/moved-large/configmaps/${name}`);
          return stringAt(found, "metadata", "uid");
        }),
      );
    const before = await uids();

    const filled = { ...configMap("moved-large/filled"), data: { text: "x".repeat(largeBytes) } };
    await world.assign("large-other", [filled], {}, { group });
    await world.pause("large-other");
    await world.assign("large-b", objects, {}, { group });
    await world.assignDelete("large-a");
    await workOn();
    expect(await uids()).toEqual(before);
    expect([await world.phase("large-a"), await world.phase("large-b")]).toEqual(["Gone", "Ready"]);
    expect(blobs.atOnce).toBe(1);
    expect(blobs.count).toBeLessThan(moving / 2);
  });
});
