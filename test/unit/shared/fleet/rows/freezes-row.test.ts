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

describe("a cluster was let go last", () => {
  test.each<[string, readonly Freeze[], readonly LiftedFreeze[], string | undefined]>([
    ["never, where nothing held it", [], [], undefined],
    ["when the last of several was lifted", [], [lifted(5), lifted(9), lifted(7)], at(9)],
    ["when one ended by itself after that", [freeze("a", { until: at(12) })], [lifted(9)], at(12)],
    ["when one was lifted after others had ended", [freeze("a", { until: at(6) })], [lifted(9)], at(9)],
    ["when one ended that was lifted later", [], [lifted(9, { until: at(4) })], at(4)],
    ["never by one that goes on", [freeze("a", { until: at(40) }), freeze("b")], [], undefined],
    ["by one that held it, and no other", [], [lifted(9, { clusters: prod }), lifted(5)], at(9)],
  ])("%s", (_name, freezes, over, released) => {
    expect(releasedAt({ freezes, lifted: over }, labels, now)).toBe(released);
  });

  test("by none that was about others", () => {
    const freezeState = {
      freezes: [freeze("a", { until: at(6), clusters: prod })],
      lifted: [lifted(9, { clusters: prod })],
    };
    expect(releasedAt(freezeState, { env: "dev" }, now)).toBeUndefined();
  });
});

test("a cluster is held by the freeze that lasts longest, of those that are about it and in force", () => {
  const held = (...freezes: readonly Freeze[]) => freezeOver({ freezes, lifted: [] }, { env: "dev" }, now)?.name;
  const [short, long] = [freeze("short", { until: at(40) }), freeze("long", { until: at(50) })];
  expect([held(short, long), held(long, short)]).toEqual(["long", "long"]);
  expect([held(long, freeze("open")), held(freeze("open"), long)]).toEqual(["open", "open"]);
  expect(held(freeze("over", { until: at(30) }), short, freeze("others", { clusters: prod }))).toBe("short");
});
