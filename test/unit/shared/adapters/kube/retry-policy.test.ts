import { describe, expect, test } from "vitest";
import { retryPolicy } from "#shared/adapters/kube/retry-policy.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const summary = { method: "PATCH", path: "/api/v1/configmaps/a", secret: false };

function error(
  status: number | undefined,
  rest: { readonly message?: string; readonly code?: string } = {},
  after?: number,
) {
  const facts = { message: "", causes: [], ...rest, ...(status === undefined ? {} : { status }) };
  return new KubeError(summary, facts, after === undefined ? {} : { retryAfterSeconds: after });
}

const policy = retryPolicy({ deadlineMs: 1_000, retryConflicts: false });
const withConflicts = retryPolicy({ deadlineMs: 1_000, retryConflicts: true });

test("waits double up to five seconds, with jitter, and end with the deadline", () => {
  expect(policy).toMatchObject({ firstWaitMs: 100, longestWaitMs: 5_000, jitter: "full", untilMs: 1_000 });
});

describe("a request is sent", () => {
  test.each<[string, unknown, number]>([
    ["five times while the server fails", error(500), 5],
    ["five times while the connection breaks", error(undefined, { code: "ECONNRESET" }), 5],
    ["eleven times while there are too many", error(429), 11],
    ["four times while a webhook is away", error(500, { message: 'failed calling webhook "w"' }), 4],
    ["once where it is refused", error(403), 1],
    ["once where nobody may be", error(401), 1],
    ["once where nobody is", error(undefined, { code: "ECONNREFUSED" }), 1],
    ["once where it is no answer", error(undefined, { code: "AnswerMalformed" }), 1],
    ["once where it is wrong", error(422), 1],
    ["once after what is no answer's error", new Error("no"), 1],
  ])("%s", (_what, failed, tries) => {
    expect(policy.tries(failed)).toBe(tries);
    expect(withConflicts.tries(failed)).toBe(tries);
  });

  test("seven times over conflicts, where the same may succeed", () => {
    expect(policy.tries(error(409))).toBe(1);
    expect(withConflicts.tries(error(409))).toBe(7);
  });
});

test.each<[unknown, number | undefined]>([
  [error(429, {}, 2), 2_000],
  [error(503, {}, 0.5), 500],
  [error(429, {}, 30), 30_000],
  [error(429, {}, 31), 30_000],
  [error(429), undefined],
  [new Error("no"), undefined],
])("a server is left alone for as long as it asks, but not for ever: %s", (failed, waitMs) => {
  expect(policy.askedWaitMs?.(failed)).toBe(waitMs);
});
