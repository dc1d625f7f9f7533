import { expect, test } from "vitest";
import { inTurns } from "#test/bench/in-turns.ts";
import { faultsOf } from "#test/bench/resolved.ts";

const good = { ms: 1, peakRssMiB: 300, digest: "sha256:a", files: 20, said: "stored" };

/** Legend: the result of a fetch, and what the benchmark says of it. */
test.each<[string, Partial<typeof good>, readonly string[]]>([
  ["as it should be", {}, []],
  ["with other files", { digest: "" }, ["has the digest , and git's files have sha256:a: stored"]],
  ["with one file less", { files: 19 }, ["has 19 files, and there are 20: stored"]],
  ["with too much memory", { peakRssMiB: 301 }, ["took 301 MiB; 300 are allowed"]],
])("a fetch %s is judged", (_what, result, faults) => {
  const expected = { what: "fetch of a folder", digest: "sha256:a", files: 20 } as const;
  expect(faultsOf({ ...good, ...result }, expected)).toEqual(faults.map((fault) => `the fetch of a folder ${fault}`));
});

test("two contenders take turns, each is first in every other round, and the first round does not count", async () => {
  const order: string[] = [];
  const one = async (who: string) => order.push(who);
  const results = await inTurns(
    3,
    () => one("a"),
    () => one("b"),
  );
  expect(order.join("")).toBe("abbaabba");
  expect(results).toEqual({ ours: [4, 5, 8], theirs: [3, 6, 7] });
});
