/** How long a cluster may have a place in the common lane, and how long it stays in the slow lane. */
import { describe, expect, test } from "vitest";
import { isSlow, type PlaceUse, stayMs, useAfter } from "#shared/fleet/rows/place-use.ts";

const began = new Date("2026-03-01T10:00:00.000Z");
const at = (seconds: number) => new Date(began.getTime() + seconds * 1000);
const stay = (from: number, to: number, keptWaiting = false) => ({ from: at(from), to: at(to), keptWaiting });

/** The use of a place after several stays of the same length, which begin at regular times. */
function useOf(stays: number, { seconds, everySeconds }: { seconds: number; everySeconds: number }) {
  let use: PlaceUse | undefined;
  for (let index = 0; index < stays; index++) {
    use = useAfter(use, stay(index * everySeconds, index * everySeconds + seconds));
  }
  return use;
}

describe("the lane of a cluster", () => {
  test("a cluster without a history has the whole budget", () => {
    expect(isSlow(undefined, began)).toBe(false);
    expect(stayMs(undefined, began)).toBe(20_000);
  });

  test("a cluster that took no time leaves no history", () => {
    expect(useAfter(undefined, stay(0, 0))).toBeUndefined();
    expect(useAfter({ since: at(0).toISOString(), seconds: 19 }, stay(300, 300))).toBeUndefined();
  });

  test("a cluster whose check takes six seconds every ten minutes is never slow", () => {
    expect(useOf(100, { seconds: 6, everySeconds: 600 })).toEqual({ since: at(59_400).toISOString(), seconds: 6 });
  });

  test("a cluster that takes a little time often is slow when its time adds up", () => {
    const often = { seconds: 5, everySeconds: 10 };
    expect(useOf(3, often)).toEqual({ since: at(0).toISOString(), seconds: 15 });
    expect(useOf(4, often)).toEqual({ since: at(0).toISOString(), seconds: 20, slowUntil: at(635).toISOString() });
  });

  test("a cluster has the rest of its budget, and at least the time for a short check", () => {
    const use = (seconds: number) => ({ since: at(0).toISOString(), seconds });
    expect([0, 12, 19].map((seconds) => stayMs(use(seconds), at(60)))).toEqual([20_000, 8_000, 5_000]);
    expect(stayMs(use(19), at(300))).toBe(20_000);
  });

  test("a cluster that keeps its worker waiting once is slow for ten minutes", () => {
    const use = useAfter(undefined, stay(0, 2, true));
    expect([3, 601, 602].map((seconds) => isSlow(use, at(seconds)))).toEqual([true, true, false]);
  });

  test("a cluster that answers quickly in the slow lane does not stay there longer", () => {
    const use = useAfter(undefined, stay(0, 2, true));
    const next = useAfter(use, stay(310, 311));
    expect(next).toEqual({ since: at(310).toISOString(), seconds: 1, slowUntil: at(602).toISOString() });
    expect(useAfter(next, stay(700, 701))).toEqual({ since: at(700).toISOString(), seconds: 1 });
  });

  test("a cluster that still takes long in the slow lane stays there longer", () => {
    const use = useAfter(undefined, stay(0, 2, true));
    expect(useAfter(use, stay(400, 460))?.slowUntil).toBe(at(1060).toISOString());
  });

  test("a cluster is not charged when the clock is set back", () => {
    expect(useAfter(undefined, stay(10, 0))).toBeUndefined();
  });
});
