import { describe, expect, test } from "vitest";
import { formatAge, formatTime } from "#shared/words/age.ts";

describe("age", () => {
  test.each([
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [310, "5m10s"],
    [600, "10m"],
    [179 * 60, "179m"],
    [3 * 3600 + 720, "3h12m"],
    [8 * 3600, "8h"],
    [47 * 3600, "47h"],
    [52 * 3600, "2d4h"],
    [12 * 86_400, "12d"],
  ])("an age of %i seconds is shown as %s", (seconds, text) => {
    const now = new Date(Date.UTC(2026, 10, 20) + seconds * 1000);
    expect(formatAge("2026-11-20T00:00:00.000Z", now)).toBe(text);
  });

  test("a time on another day is shown with its date", () => {
    const now = new Date("2026-11-20T08:00:00Z");
    expect(formatTime("2026-11-20T07:00:01.500Z", now)).toBe("07:00:01Z");
    expect(formatTime("2026-11-19T07:00:01.500Z", now)).toBe("2026-11-19 07:00:01Z");
  });
});
