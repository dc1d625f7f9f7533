import { describe, expect, test } from "vitest";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";

const policy: RetryPolicy = { tries: () => 5, firstWaitMs: 100, jitter: "none" };

/** Fails with the given failures, one at each try, then returns the number of tries; only waits take time. */
async function tried(failures: readonly unknown[], changes: Partial<RetryPolicy> = {}, random = () => 0.5) {
  const waits: number[] = [];
  let now = 0;
  let tries = 0;
  const clock = {
    now: () => new Date(now),
    async sleep(milliseconds: number) {
      waits.push(milliseconds);
      now += milliseconds;
    },
  };
  const work = async () => {
    tries += 1;
    if (tries <= failures.length) throw failures[tries - 1];
    return "done";
  };
  const end = await retrying({ ...policy, ...changes }, { clock, random }, work).catch((error: unknown) => ({ error }));
  return { end, tries, waits };
}

describe("the tries of some work", () => {
  test("work that succeeds is done once", async () => {
    expect(await tried([])).toEqual({ end: "done", tries: 1, waits: [] });
  });

  test("failing work is tried again until it succeeds, after waits that double", async () => {
    expect(await tried(["a", "b", "c"])).toEqual({ end: "done", tries: 4, waits: [100, 200, 400] });
  });

  test("the last allowed try ends with its failure, without another wait", async () => {
    const failures = ["a", "b", "c", "d", "e", "f"];
    expect(await tried(failures)).toEqual({ end: { error: "e" }, tries: 5, waits: [100, 200, 400, 800] });
  });

  test("a failure that another try cannot repair is not tried again", async () => {
    const tries = (error: unknown) => (error === "for good" ? 1 : 5);
    expect(await tried(["a", "for good", "c"], { tries })).toEqual({
      end: { error: "for good" },
      tries: 2,
      waits: [100],
    });
  });

  test("tries of a lower layer count as tries", async () => {
    const triesIn = (error: unknown) => (error === "thrice" ? 3 : 1);
    expect(await tried(["thrice", "a", "b"], { triesIn })).toEqual({
      end: { error: "b" },
      tries: 3,
      waits: [400, 800],
    });
  });
});

describe("a wait", () => {
  test.each<readonly [string, Partial<RetryPolicy>, readonly number[]]>([
    ["grows by the given factor", { growth: 3 }, [100, 300, 900]],
    ["never exceeds its limit", { longestWaitMs: 150 }, [100, 150, 150]],
    ["with full jitter is a random part of itself", { jitter: "full" }, [50, 100, 200]],
    ["has the length that was asked for, without jitter", { jitter: "full", askedWaitMs: () => 7 }, [7, 7, 7]],
    ["has its own length if none was asked for", { askedWaitMs: () => undefined }, [100, 200, 400]],
  ])("a wait %s", async (_name, changes, waits) => {
    expect(await tried(["a", "b", "c"], changes)).toEqual({ end: "done", tries: 4, waits });
  });

  test("a wait that would last until the deadline is not begun", async () => {
    expect(await tried(["a", "b", "c"], { untilMs: 300 })).toEqual({ end: { error: "b" }, tries: 2, waits: [100] });
    expect(await tried(["a", "b", "c"], { untilMs: 301 })).toEqual({
      end: { error: "c" },
      tries: 3,
      waits: [100, 200],
    });
  });
});
