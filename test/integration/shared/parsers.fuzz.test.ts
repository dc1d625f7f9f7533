/**
 * Each parser of bytes from outside gets inputs that are nearly right. It refuses them with one of Starling's errors, in
 * bounded time and memory, or what it reads is what others read. `npm run nightly -- fuzz` tries many more.
 */
import { describe, expect, test } from "vitest";
import { mutate, numbersFrom } from "#test/support/fuzz/mutate.ts";
import { fuzzedParsers } from "#test/support/fuzz/parsers.ts";
import { playFuzz } from "#test/support/fuzz/play-fuzz.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const usual = 200;
const inputs = propertyRuns(usual);
// A process starts for each seed. The night has its own seed.
const seeds = inputs === usual ? propertySeeds.slice(0, 1) : propertySeeds;

describe.each(seeds)("with STARLING_PROPERTY_SEED=%i", (seed) => {
  test.each(fuzzedParsers.map(({ name }) => name))("%s withstands any bytes", { timeout: 3_600_000 }, async (name) => {
    expect(await playFuzz(name, { seed, inputs })).toEqual([]);
  });
});

test("the same seed makes the same bytes, and other seeds others", () => {
  const samples = [Buffer.from("one sample"), Buffer.from("another one")];
  const of = (seed: number) => mutate(samples, numbersFrom(seed)).toString("base64");
  const made = Array.from({ length: 50 }, (_, seed) => of(seed));
  expect(made.map((_, seed) => of(seed))).toEqual(made);
  expect(new Set(made).size).toBeGreaterThan(45);
});

test.each([
  ["that hangs", "hangs", /the process ended \(SIGKILL\)/],
  ["that throws an error of its own", "throws", /input 0: RangeError: what is this/],
  ["that fills the memory", "grows", /the process took \d+ MiB; 600 are allowed/],
  ["that takes long", "computes", /it takes \d+ ms of processor time/],
  ["that ends its process", "exits", /the process ended \(3\)/],
  ["that refuses a right input", "refuses", /a sample is refused: no/],
])("a parser %s is told", { timeout: 120_000 }, async (_what, name, message) => {
  const silenceMs = name === "hangs" ? 4000 : 60_000;
  const [fault = ""] = await playFuzz(name, { seed: 1, inputs: 2, silenceMs, parsers: "faulty" });
  expect(fault).toMatch(message);
});
