import { expect, test } from "vitest";
import { untilSurveyed } from "#test/support/alarm-watch.ts";
import type { EmbeddedLine } from "#test/support/embedded-metrics.ts";

/** Names of metrics in the order of the lines, in one part for each poll; the first part is there before. */
test.each<[string, readonly (readonly string[])[], number]>([
  ["the next tick surveys", [[], ["DueLag", "Targets", "StaleSources"], ["DueLag"]], 0],
  ["the lines of one survey come in parts", [[], ["DueLag"], ["Targets"], ["HaltedRollouts"], ["DueLag"]], 0],
  ["a survey is under way", [["DueLag", "Targets"], ["Targets"], ["DueLag"], ["DueLag", "Targets"], ["DueLag"]], 4],
  ["ticks between surveys only claim", [[], ["DueLag", "DueLag", "Targets"], ["StaleSources", "DueLag"]], 1],
])("a survey is awaited to its last line, and from its tick's first one, when %s", async (_what, polls, first) => {
  const lines: EmbeddedLine[] = [];
  const [before = [], ...later] = polls;
  const report = (names: readonly string[]) => lines.push(...names.map((name) => ({ [name]: 1 })));
  report(before);
  async function waitFor<T>(_awaited: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    for (const names of later) {
      expect(await probe()).toBeUndefined();
      report(names);
    }
    const found = await probe();
    if (found === undefined || found === false) throw new Error("the survey is not over");
    return found;
  }
  expect(await untilSurveyed({ waitFor }, lines)).toBe(first);
});
