import { describe, expect, test } from "vitest";
import { type Freeze, freezeOver, type LiftedFreeze, releasedAt } from "#shared/fleet/rows/freezes-row.ts";

const at = (minute: number) => `2026-11-21T08:${String(minute).padStart(2, "0")}:00.000Z`;
const now = new Date(at(30));
const prod = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };
const labels = { env: "prod" };

const freeze = (name: string, more: Partial<Freeze> = {}): Freeze => ({
  name,
  by: "ana",
  at: at(0),
  reason: "INC-1",
  ...more,
});
const lifted = (minute: number, more: Partial<Freeze> = {}): LiftedFreeze => ({
  ...freeze("over", more),
  lifted: { by: "bo", at: at(minute) },
});

describe("the last release of a cluster from freezes", () => {
  test.each<[string, readonly Freeze[], readonly LiftedFreeze[], string | undefined]>([
    ["does not exist without freezes", [], [], undefined],
    ["is when the last of several was lifted", [], [lifted(5), lifted(9), lifted(7)], at(9)],
    [
      "is when a freeze ended by itself, after another was lifted",
      [freeze("a", { until: at(12) })],
      [lifted(9)],
      at(12),
    ],
    ["is when a freeze was lifted after others had ended", [freeze("a", { until: at(6) })], [lifted(9)], at(9)],
    ["is when a freeze ended, although it was lifted later", [], [lifted(9, { until: at(4) })], at(4)],
    ["does not come from a freeze that goes on", [freeze("a", { until: at(40) }), freeze("b")], [], undefined],
    [
      "comes from a freeze of any selection that has the cluster",
      [],
      [lifted(9, { clusters: prod }), lifted(5)],
      at(9),
    ],
  ])("the last release of a cluster %s", (_name, freezes, over, released) => {
    expect(releasedAt({ freezes, lifted: over }, labels, now)).toBe(released);
  });

  test("a freeze of other clusters does not release a cluster", () => {
    const freezeState = {
      freezes: [freeze("a", { until: at(6), clusters: prod })],
      lifted: [lifted(9, { clusters: prod })],
    };
    expect(releasedAt(freezeState, { env: "dev" }, now)).toBeUndefined();
  });
});

test("a cluster is held by the longest freeze in force that selects it", () => {
  const held = (...freezes: readonly Freeze[]) => freezeOver({ freezes, lifted: [] }, { env: "dev" }, now)?.name;
  const [short, long] = [freeze("short", { until: at(40) }), freeze("long", { until: at(50) })];
  expect([held(short, long), held(long, short)]).toEqual(["long", "long"]);
  expect([held(long, freeze("open")), held(freeze("open"), long)]).toEqual(["open", "open"]);
  expect(held(freeze("over", { until: at(30) }), short, freeze("others", { clusters: prod }))).toBe("short");
});
