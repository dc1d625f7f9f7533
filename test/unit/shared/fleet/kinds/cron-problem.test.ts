import { Cron } from "croner";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cronProblem, timeZoneProblem } from "#shared/fleet/kinds/cron-problem.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const fiveFields = 'must have five fields (minute, hour, day, month, weekday), such as "0 9 * * 1-5"';

test.each<readonly [string, string]>([
  ["", fiveFields],
  ["@daily", fiveFields],
  ["0 9 * *", fiveFields],
  ["* * * * * *", fiveFields],
  ["61 9 * * *", "has the minute 61; expected 0 to 59"],
  ["0 24 * * *", "has the hour 24; expected 0 to 23"],
  ["0 9am * * *", "has the hour 9am; expected 0 to 23"],
  ["0 9 0 * *", "has the day 0; expected 1 to 31"],
  ["0 9 L * *", "has the day L; expected 1 to 31"],
  ["0 9 1W * *", "has the day 1W; expected 1 to 31"],
  ["0 9 ? * *", "has the day ?; expected 1 to 31"],
  ["0 9 * 13 *", "has the month 13; expected 1 to 12, or JAN to DEC"],
  ["0 9 * MON *", "has the month MON; expected 1 to 12, or JAN to DEC"],
  ["0 9 * * 8", "has the weekday 8; expected 0 to 7, or SUN to SAT"],
  ["0 9 * * friday", "has the weekday friday; expected 0 to 7, or SUN to SAT"],
  ["0 9 * * 5#2", "has the weekday 5#2; expected 0 to 7, or SUN to SAT"],
  ["0 17-9 * * *", "has the hours 17-9, which end before they begin; write 17-23,0-9"],
  ["0 9 * * FRI-MON", "has the weekdays FRI-MON, which end before they begin; write 5-7,0-1"],
  ["5/10 * * * *", "has the minute 5/10: a step needs a range; write 5-59/10"],
  ["*/0 * * * *", "has the step 0 in */0; steps of minutes are 1 to 59"],
  ["*/90 * * * *", "has the step 90 in */90; steps of minutes are 1 to 59"],
  ["0,,5 9 * * *", 'has the minute ""; write *, 0, a range such as 0-59, a step such as */2, or a list of these'],
  ["0 9 *-5 * *", 'has the day "*-5"; write *, 1, a range such as 1-31, a step such as */2, or a list of these'],
  ["0 9 30 2 *", "never comes: month 2 has no day 30, but 29 days; choose another day or month"],
  ["0 9 31 APR,6 *", "never comes: month APR,6 has no day 31, but 30 days; choose another day or month"],
])("the cron expression %j is refused, and the error names its part", (text, problem) => {
  expect(cronProblem(text)).toBe(problem);
});

test.each([
  "0 9 * * 1-5",
  "*/15 0-6,22 * JAN-MAR MON,FRI",
  "0 0 29 2 *",
  "0 0 30 2 MON",
  "0 0 31 4-5 *",
  "0 9 * * FRI-SUN",
  " 0  9 * * 7 ",
])("the cron expression %j is accepted", (text) => {
  expect(cronProblem(text)).toBeUndefined();
});

/** Fields that are mostly right. */
const word = fc.constantFrom("0", "1", "5", "7", "9", "12", "23", "29", "31", "59", "60", "JAN", "SUN", "FRI", "L", "");
const part = fc.oneof(
  word,
  fc.constantFrom("*", "*/2", "1-6/2"),
  fc.tuple(word, word).map((ends) => ends.join("-")),
  fc.tuple(word, word).map((step) => step.join("/")),
);
const field = fc.oneof(part, fc.tuple(part, part).map(String), fc.constant("*"));

test.each(propertySeeds)(
  "the library finds a turn of every cron expression that is accepted, with the seed %i",
  (seed) => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(field, { minLength: 5, maxLength: 5 }), (fields) => {
        const text = fields.join(" ");
        if (cronProblem(text) !== undefined) return;
        accepted++;
        expect(new Cron(text, { timezone: "UTC", mode: "5-part" }).nextRun(new Date("2026-01-01"))).not.toBeNull();
      }),
      { seed, numRuns: propertyRuns(5000) },
    );
    expect(accepted).toBeGreaterThan(100);
  },
);

const zone = "must be a time zone such as Europe/London or UTC";

test.each<readonly [string, string | undefined]>([
  ["Europe/London", undefined],
  ["UTC", undefined],
  ["GMT", undefined],
  ["EST5EDT", undefined],
  ["", zone],
  ["+02:00", zone],
  ["Europe/Londn", `${zone}: write Europe/London`],
  ["london", `${zone}: write Europe/London`],
  ["New York", `${zone}: write America/New_York`],
  ["BST", `${zone}, because several zones have the same abbreviation`],
])("the time zone %j is checked, and an error names the one that is meant", (text, problem) => {
  expect(timeZoneProblem(text)).toBe(problem);
});
