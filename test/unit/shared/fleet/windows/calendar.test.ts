import { CronExpressionParser } from "cron-parser";
import { describe, expect, test } from "vitest";
import { nextTurn } from "#shared/fleet/kinds/cron.ts";
import {
  type Calendar,
  closedSince,
  isOpen,
  nextClosing,
  nextOpening,
  openings,
} from "#shared/fleet/windows/calendar.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

function at(text: string): Date {
  return new Date(text);
}

function text(date: Date | undefined): string | undefined {
  return date?.toISOString().replace(":00.000Z", "Z");
}

const daily = (cron: string, duration: string, timeZone = "Europe/London") => ({ cron, duration, timeZone });

describe("the calendar of a window", () => {
  const nights = { allow: [daily("0 22 * * *", "4h", "UTC")], deny: [] };

  test("a window is open from a turn of its cron expression until its duration is over", () => {
    expect(["21:59", "22:00", "23:30"].map((time) => isOpen(nights, at(`2026-11-28T${time}:00Z`)))).toEqual([
      false,
      true,
      true,
    ]);
    expect(["01:59", "02:00"].map((time) => isOpen(nights, at(`2026-11-29T${time}:00Z`)))).toEqual([true, false]);
  });

  test("a window without allowed times is open, except when one is denied", () => {
    const deny = [{ start: "2026-12-24T00:00:00+01:00", end: "2027-01-02T00:00:00+01:00" }];
    const freeze = { allow: [], deny };
    expect(isOpen(freeze, at("2026-12-23T22:59:59Z"))).toBe(true);
    expect(text(nextClosing(freeze, at("2026-11-28T00:00:00Z")))).toBe("2026-12-23T23:00Z");
    expect(text(nextOpening(freeze, at("2026-12-25T00:00:00Z")))).toBe("2027-01-01T23:00Z");
    expect(nextClosing(freeze, at("2027-02-01T00:00:00Z"))).toBeUndefined();
  });

  test.each([
    ["the last closing", "2026-11-20T08:00:00Z", "2026-11-29T08:00:00Z", "2026-11-29T02:00Z"],
    [
      "the start of the wait, when it was closed then",
      "2026-11-29T07:00:00Z",
      "2026-11-29T08:00:00Z",
      "2026-11-29T07:00Z",
    ],
    ["the last closing, when the start is unknown", undefined, "2026-11-29T08:00:00Z", "2026-11-29T02:00Z"],
    ["nothing while it is open", undefined, "2026-11-29T23:00:00Z", undefined],
  ])("somebody waits for the opening since %s", (_what, start, now, since) => {
    expect(text(closedSince(nights, start, at(now)))).toBe(since);
  });

  test("nobody knows since when a window is closed that closed long ago, if the start of the wait is unknown", () => {
    const never = { allow: [{ start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" }], deny: [] };
    expect(closedSince(never, undefined, at("2026-11-29T08:00:00Z"))).toBeUndefined();
  });

  test("each time has its own next opening, in whatever order people ask", () => {
    const calendar = { allow: [daily("0 8 * * *", "1h", "UTC")], deny: [] };
    const asked = ["03T09:30", "01T07:00", "01T08:00", "01T08:30", "01T07:59", "02T09:00"];
    expect(asked.map((time) => text(nextOpening(calendar, at(`2026-06-${time}:00Z`))))).toEqual([
      "2026-06-04T08:00Z",
      "2026-06-01T08:00Z",
      "2026-06-01T08:00Z",
      "2026-06-01T08:30Z",
      "2026-06-01T08:00Z",
      "2026-06-03T08:00Z",
    ]);
  });

  test("an opening behind a thousand denied hours is found", () => {
    const calendar = { allow: [daily("0 * * * *", "30m", "UTC")], deny: [daily("0 * * 2-12 *", "30m", "UTC")] };
    expect(text(nextOpening(calendar, at("2026-11-28T12:10:00Z")))).toBe("2027-01-01T00:00Z");
  });

  test("allowed times are a union, and a denied time beats them", () => {
    const allow = [daily("0 8 * * *", "4h", "UTC"), daily("0 11 * * *", "4h", "UTC")];
    const calendar: Calendar = { allow, deny: [daily("0 13 * * *", "1h", "UTC")] };
    expect(text(nextClosing(calendar, at("2026-06-01T09:00:00Z")))).toBe("2026-06-01T13:00Z");
    expect(text(nextOpening(calendar, at("2026-06-01T13:30:00Z")))).toBe("2026-06-01T14:00Z");
    expect(text(nextClosing(calendar, at("2026-06-01T14:00:00Z")))).toBe("2026-06-01T15:00Z");
    expect(openings(calendar, at("2026-06-01T15:30:00Z"), 3).map(text)).toEqual([
      "2026-06-02T08:00Z",
      "2026-06-02T14:00Z",
      "2026-06-03T08:00Z",
    ]);
  });

  test.each<readonly [string, Calendar]>([
    ["a time that has passed", { allow: [{ start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" }], deny: [] }],
    ["a day that does not exist", { allow: [daily("0 0 30 2 *", "1h")], deny: [] }],
    ["allowed times that are all denied", { allow: [daily("0 9 * * *", "1h")], deny: [daily("0 8 * * *", "3h")] }],
  ])("%s never opens again", (_what, calendar) => {
    expect(nextOpening(calendar, at("2026-11-28T12:00:00Z"))).toBeUndefined();
    expect(openings(calendar, at("2026-11-28T12:00:00Z"), 5)).toEqual([]);
  });

  test("a window whose occurrences follow each other without a gap stays open", () => {
    expect(nextClosing({ allow: [daily("0 * * * *", "1h")], deny: [] }, at("2026-11-28T12:00:00Z"))).toBeUndefined();
  });

  test("a turn in an hour that the zone skips comes when the hour would have ended, and in a repeated hour once", () => {
    const turns = (from: string) => text(new Date(nextTurn("30 2 * * *", "Europe/Berlin", Date.parse(from)) ?? 0));
    expect(turns("2026-03-28T12:00:00Z")).toBe("2026-03-29T01:00Z");
    expect(turns("2026-10-24T12:00:00Z")).toBe("2026-10-25T00:30Z");
    expect(turns("2026-10-25T00:30:00Z")).toBe("2026-10-26T01:30Z");
  });
});

/** The turns by walking over every minute, with the zone's clock by Intl. */
function walkedTurns(crons: readonly string[], timeZone: string, from: number, days: number): readonly string[][] {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hourCycle: "h23",
    ...{ minute: "2-digit", hour: "2-digit", day: "numeric", month: "numeric", weekday: "short" },
  });
  const fits = (asked: string | undefined, value: number) => asked === "*" || Number(asked) === value;
  const found = crons.map((): string[] => []);
  for (let time = from + minuteMs; time <= from + days * dayMs; time += minuteMs) {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
    const week = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(parts.weekday ?? "");
    const clock = [parts.minute, parts.hour, parts.day, parts.month, week].map(Number);
    for (const [index, cron] of crons.entries()) {
      const fields = cron.split(" ");
      if (clock.every((value, at) => fits(fields[at], value))) found[index]?.push(text(new Date(time)) ?? "");
    }
  }
  return found;
}

function turnsUntil(cron: string, timeZone: string, from: number, to: number): readonly string[] {
  const found: string[] = [];
  let next = nextTurn(cron, timeZone, from);
  while (next !== undefined && next <= to) {
    found.push(text(new Date(next)) ?? "");
    next = nextTurn(cron, timeZone, next);
  }
  return found;
}

const zones = [
  ...["UTC", "Europe/London", "Europe/Berlin", "America/New_York", "America/St_Johns"],
  ...["Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo"],
] as const;
/** Expressions outside the hours that zones skip or repeat: there the implementations agree by the letter. */
const plain = ["0 9 * * *", "30 22 * * *", "0 6 * * 1", "15 18 30 * *", "0 12 29 2 *"] as const;
/** Around the changes of clocks of both hemispheres, and around 29 February. */
const starts = [
  ...["2026-03-06", "2026-03-27", "2026-10-02", "2026-10-23", "2028-02-27"],
  // Days before a zone changed its rules: Apia skipped a day, and Sao Paulo had its last summer time.
  ...["2011-12-27", "2018-10-30", "2019-02-14"],
] as const;

const vectors = zones.flatMap((zone) => plain.flatMap((cron) => starts.map((start) => [zone, cron, start] as const)));

describe("the turns of cron expressions against two other implementations", () => {
  test("there are more than 200 vectors", () => {
    expect(vectors.length).toBeGreaterThanOrEqual(200);
  });

  test.each(zones)("in %s, the next turns are those of cron-parser", (zone) => {
    for (const [, cron, start] of vectors.filter(([one]) => one === zone)) {
      const from = Date.parse(`${start}T00:00:00Z`);
      const other = CronExpressionParser.parse(cron, { tz: zone, currentDate: new Date(from) });
      let next: number | undefined = from;
      for (let index = 0; index < 5; index++) {
        next = nextTurn(cron, zone, next ?? 0);
        expect([cron, start, next]).toEqual([cron, start, other.next().getTime()]);
      }
    }
  });

  test.each(zones.slice(2, 6))("in %s, the turns of four days are the minutes that fit by the zone's clock", (zone) => {
    for (const start of starts) {
      const from = Date.parse(`${start}T00:00:00Z`);
      const turns = plain.map((cron) => turnsUntil(cron, zone, from, from + 4 * dayMs));
      expect([start, turns]).toEqual([start, walkedTurns(plain, zone, from, 4)]);
    }
  });
});
