/** A value changes that three of 10,000 clusters use: the test counts everything that the planner sends and writes. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Message } from "#shared/messages.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const three = ["c7", "c77", "c9999"];

test("a value of three clusters causes three requests for renderings, messages to three workers and writes to three Syncs", {
  timeout: 180_000,
}, async () => {
  const table = new MemoryTable({ pageItems: 1000 });
  const heard: Message[] = [];
  const group = new PlannedGroup(
    { name: "web", templates: 1, maxConcurrent: "100%", path: "sizes/{{ cluster.values.size | default(std) }}" },
    { table, blobs: new MemoryBlobStore(), heard: (message) => void heard.push(message) },
  );
  const all = Array.from({ length: 10_000 }, (_, index) => `c${index}`);
  const versions = async () => {
    const rows = await table.getMany(all.map((name) => keys.sync(name, "bench", "web.t0")));
    return new Map(rows.map(({ cluster, version }) => [cluster, version]));
  };
  await group.create(all);
  await group.rollOut("one", group.call);
  const before = await versions();
  expect(before.size).toBe(10_000);
  expect(heard.filter(({ to }) => to === "render")).toHaveLength(1);

  heard.length = 0;
  for (const name of three) await group.setValues([name], { size: `of-${name}` });
  await group.rollOut("one", group.call);
  expect(heard.filter(({ to }) => to === "render")).toHaveLength(3);
  expect([...new Set(heard.flatMap((message) => (message.to === "apply" ? [message.cluster] : [])))].sort()).toEqual(
    three,
  );
  const after = await versions();
  expect(all.filter((name) => after.get(name) !== before.get(name))).toEqual(three);

  // A value that no cluster uses causes no work.
  heard.length = 0;
  await group.setValues(["c5"], { colour: "red" });
  await group.rollOut("one", group.call);
  expect(heard).toEqual([]);
  expect(await versions()).toEqual(after);
});
