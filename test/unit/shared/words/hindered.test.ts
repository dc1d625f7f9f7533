import { expect, test } from "vitest";
import type { TargetItem } from "#shared/fleet/api/objects.ts";
import { hindered, hindranceLines } from "#shared/words/hindered.ts";

const now = new Date("2026-11-20T08:01:00Z");

function target(cluster: string, change: Partial<TargetItem>): TargetItem {
  return {
    cluster,
    order: 0,
    stage: "rest",
    state: "Applying",
    reason: "",
    assignedAt: "2026-11-20T08:00:59.000Z",
    ...change,
  };
}

const missing = 'Deployment shop/web: NotFound (namespaces "shop" not found)';

test("a target is hindered as soon as it is tried again, or when it is not ready after some seconds", () => {
  const given = [
    target("c1", { reason: missing, retrying: true }),
    target("c2", { reason: missing, retrying: true }),
    target("c3", { state: "Verifying", reason: "Deployment shop/web: NotReady (0/3 available)" }),
    target("c4", {
      state: "Verifying",
      reason: "Deployment shop/web: NotReady (1/3 available)",
      assignedAt: "2026-11-20T08:00:40.000Z",
    }),
    target("c5", {
      state: "Assigned",
      reason: "waiting for the cluster's worker",
      assignedAt: "2026-11-20T07:00:00.000Z",
    }),
  ];
  const found = hindered(given, now);
  expect(found.map(({ cluster }) => cluster)).toEqual(["c1", "c2", "c4"]);
  expect(hindranceLines(found).map(({ line }) => line)).toEqual([
    `c1 and 1 more: Applying: ${missing} (Starling tries again)`,
    "c4: Verifying: Deployment shop/web: NotReady (1/3 available)",
  ]);
});

test("two lines with the same reason but other numbers have the same cause", () => {
  const cause = (count: number) =>
    hindranceLines([
      target("c1", { state: "Verifying", reason: `Deployment shop/web: NotReady (${count}/3 available)` }),
    ])[0]?.cause;
  expect(cause(1)).toBe(cause(2));
});
