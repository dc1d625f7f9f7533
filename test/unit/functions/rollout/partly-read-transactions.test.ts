/**
 * DynamoDB isolates a transaction from each read, and not from two of them: one item may be seen after it, and another one
 * before it. The directory's versions are read first, and its entries next.
 */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { playOn, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const ofRing = (ring: string) => ({ selector: { matchLabels: { ring } } });

/** The table as one check sees it in that moment: the cluster's entry is still the old one. */
function halfSeen({ table }: PlannerWorld, before: Row): PlannerWorld["table"] {
  const asBefore = (rows: readonly Row[]) =>
    rows.map((row) => (row.pk === before.pk && row.sk === before.sk ? before : row));
  return new Proxy(table, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const call = value.bind(target) as (...given: readonly unknown[]) => unknown;
      if (name === "getMany") return async (...given: readonly unknown[]) => asBefore((await call(...given)) as Row[]);
      if (name !== "query") return call;
      return async (...given: readonly unknown[]) => {
        const page = (await call(...given)) as { readonly items: readonly Row[] };
        return { ...page, items: asBefore(page.items) };
      };
    },
  });
}

async function smallGroup(): Promise<PlannerWorld> {
  const made = await worldOf({ a: "own", b: "other" }, {}, undefined, ofRing("own"));
  await made.rollOut();
  made.advanceClock(3600);
  await made.plan();
  return made;
}

async function entryOf(made: PlannerWorld, cluster: string): Promise<Row> {
  const row = await made.table.get(keys.fleet(cluster));
  if (row === undefined) throw new Error(`${cluster} is not registered`);
  return row;
}

test("a cluster is selected although a check saw its entry as it was before the write", async () => {
  const made = await smallGroup();
  const before = await entryOf(made, "b");
  await made.addCluster("b", "own");
  await made.plan(halfSeen(made, before)).catch(() => {});
  await playOn(made, 2);
  expect((await made.sync("b"))?.desired.revision).toBe((await made.sync("a"))?.desired.revision);
  expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
});

test("a cluster is selected although a reading of the whole directory saw its entry as it was before the write", async () => {
  const made = await smallGroup();
  const before = await entryOf(made, "b");
  await made.addCluster("b", "own");
  await made.setGroup({}, undefined, {
    selector: { matchExpressions: [{ key: "ring", operator: "In", values: ["own"] }] },
  });
  await made.plan(halfSeen(made, before)).catch(() => {});
  await playOn(made, 2);
  expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
});
