import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { clusterNameOf } from "#local/clusters/kubeconfig-file.ts";
import { type AccountToken, keepTokenFresh } from "#local/clusters/own-cluster.ts";

const minute = 60_000;
beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

const token = (name: string, minutes: number): AccountToken => ({
  token: name,
  expiresAt: new Date(Date.now() + minutes * minute),
});

describe("the token of a user's cluster", () => {
  function keep(create: (signal: AbortSignal) => Promise<AccountToken>) {
    const stored: string[] = [];
    const problems: unknown[] = [];
    const kept = keepTokenFresh({
      current: token("first", 60),
      create,
      store: async (text) => void stored.push(text),
      now: Date.now,
      checkEveryMs: minute,
      onProblem: (error) => problems.push(error),
    });
    return { kept, stored, problems };
  }

  test("the token is replaced when half of its lifetime is over, however long the lifetime is", async () => {
    const lives = [30, 1440];
    const { kept, stored } = keep(async () => token(`lives ${lives[0]}`, lives.shift() ?? 0));
    await vi.advanceTimersByTimeAsync(29 * minute);
    expect(stored).toEqual([]);
    await vi.advanceTimersByTimeAsync(minute);
    expect(stored).toEqual(["lives 30"]);
    await vi.advanceTimersByTimeAsync(15 * minute);
    expect(stored).toEqual(["lives 30", "lives 1440"]);
    await vi.advanceTimersByTimeAsync(719 * minute);
    expect(stored).toHaveLength(2);
    await kept.stop();
  });

  test("the token is replaced soon after a sleep of the machine, and the replacement is tried again after a failure", async () => {
    let isAway = true;
    const { kept, stored, problems } = keep(async () => {
      if (isAway) throw new Error("no route");
      return token("second", 60);
    });
    vi.setSystemTime(8 * 60 * minute);
    await vi.advanceTimersByTimeAsync(2 * minute);
    expect([stored, problems.length]).toEqual([[], 2]);
    isAway = false;
    await vi.advanceTimersByTimeAsync(minute);
    expect(stored).toEqual(["second"]);
    await kept.stop();
  });

  test("a stop aborts a replacement in progress, and reports no problem", async () => {
    const { kept, stored, problems } = keep(
      (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    await vi.advanceTimersByTimeAsync(31 * minute);
    await kept.stop();
    await vi.advanceTimersByTimeAsync(60 * minute);
    expect([stored, problems]).toEqual([[], []]);
  });
});

describe("the name of a user's cluster", () => {
  test.each([
    ["kind-dev", "kind-dev"],
    ["arn:aws:eks:eu-west-1:111122223333:cluster/Prod_EUW1_07", "prod-euw1-07"],
    ["gke_acme_europe-west1_main", "gke-acme-europe-west1-main"],
    ["admin@prod.example.com", "admin-prod-example-com"],
    [`${"a".repeat(62)}-b`, `${"a".repeat(62)}`],
    ["--", "own"],
    ["", "own"],
  ])("a cluster of the kubeconfig context %j gets the name %s", (context, name) => {
    expect(clusterNameOf(context)).toBe(name);
  });
});
