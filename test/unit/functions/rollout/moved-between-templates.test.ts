/** An object moves between templates: some Sync of each cluster is always assigned to have it, wherever the planner dies. */
import { expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { diesAt, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 2 };
/** The object is in the folders `has-it` and `has-it-too`. */
const of = (paths: Readonly<Record<string, string>>) =>
  Object.entries(paths).map(([name, path]) => ({ name, source: "app", path }));
const holding = new Set(["has-it", "has-it-too"].map((path) => digestOf(`${digestOf("aaa")}${path}`)));

const moves = {
  "to the template before it": [
    { a: "bare", b: "has-it" },
    { a: "has-it-too", b: "bare" },
  ],
  "to the template after it": [
    { a: "has-it", b: "bare" },
    { a: "bare", b: "has-it-too" },
  ],
  "with a template that is renamed": [
    { a: "has-it", b: "bare" },
    { c: "has-it", b: "bare" },
  ],
  "out of a template that is dropped": [{ a: "has-it", b: "bare" }, { b: "has-it-too" }],
} as const;

function without(made: PlannerWorld): readonly string[] {
  const syncs = made.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.action === "apply");
  const has = new Set(
    syncs.filter(({ desired }) => holding.has(desired.renderDigest ?? "")).map(({ cluster }) => cluster),
  );
  return ["c1", "c2"].filter((cluster) => !has.has(cluster));
}

test.each(Object.entries(moves))(
  "an object that moves %s is always assigned to each cluster, wherever the planner dies",
  { timeout: 60_000 },
  async (_, [before, after]) => {
    for (const when of ["before", "after"] as const) {
      for (let at = 1, isDead = true; isDead; at++) {
        const made = await worldOf(["c1", "c2"], pace, of(before));
        await made.rollOut();
        expect(without(made)).toEqual([]);
        await made.setGroup(pace, of(after));
        await made.plan();
        await made.renderAll();
        isDead = await diesAt(made, at, when);
        expect(without(made), `dead ${when} call ${at}`).toEqual([]);
        await made.rollOut();
        expect(without(made)).toEqual([]);
      }
    }
  },
);
