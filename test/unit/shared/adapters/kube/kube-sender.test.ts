import { describe, expect, test } from "vitest";
import { Patience, retryPolicy } from "#shared/adapters/kube/kube-sender.ts";
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

const fixed = () => new Patience({ now: () => new Date(0) });
const policy = retryPolicy({ deadlineMs: 1_000, retryConflicts: false, patience: fixed() });
const withConflicts = retryPolicy({ deadlineMs: 1_000, retryConflicts: true, patience: fixed() });

test("waits between tries double up to five seconds, with jitter, and end with the deadline", () => {
  expect(policy).toMatchObject({ firstWaitMs: 100, longestWaitMs: 5_000, jitter: "full", untilMs: 1_000 });
});

describe("the number of tries of a request", () => {
  test.each<[string, unknown, number]>([
    ["five times while the server fails", error(500), 5],
    ["five times while the connection breaks", error(undefined, { code: "ECONNRESET" }), 5],
    ["twice if no answer came in time", error(undefined, { code: "ETIMEDOUT" }), 2],
    ["eleven times while the server has too many requests", error(429), 11],
    ["four times while a webhook does not answer", error(500, { message: 'failed calling webhook "w"' }), 4],
    ["once if it is forbidden", error(403), 1],
    ["once if the credentials are refused", error(401), 1],
    ["once if no server listens", error(undefined, { code: "ECONNREFUSED" }), 1],
    ["once if the answer is malformed", error(undefined, { code: "AnswerMalformed" }), 1],
    ["once if the request is invalid", error(422), 1],
    ["once after an error that is not about an answer", new Error("no"), 1],
  ])("a request is sent %s", (_what, failed, tries) => {
    expect(policy.tries(failed)).toBe(tries);
    expect(withConflicts.tries(failed)).toBe(tries);
  });

  test("a request is sent seven times over conflicts, if the same request may succeed later", () => {
    expect(policy.tries(error(409))).toBe(1);
    expect(withConflicts.tries(error(409))).toBe(7);
  });
});

test.each<[unknown, number | undefined]>([
  [error(429, {}, 2), 2_000],
  [error(503, {}, 0.5), 500],
  [error(429, {}, 30), 30_000],
  [error(429), undefined],
  [new Error("no"), undefined],
])("a client waits as long as the server asks: %s", (failed, waitMs) => {
  expect(policy.askedWaitMs?.(failed)).toBe(waitMs);
});

describe("a server asks for fewer requests", () => {
  test.each<[string, unknown, number]>([
    ["a wait as long as the patience is kept", error(429, {}, 15), 11],
    ["a wait longer than the patience ends the tries", error(429, {}, 15.1), 1],
    ["a server that is away does not get a longer wait", error(503, {}, 16), 1],
    ["an answer without a requested wait is tried again", error(429), 11],
  ])("%s", (_what, failed, tries) => {
    expect(retryPolicy({ deadlineMs: 1e9, retryConflicts: false, patience: fixed() }).tries(failed)).toBe(tries);
  });

  test("all requests of one piece of work share their patience, which renews with an answer", () => {
    let now = 0;
    const patience = new Patience({ now: () => new Date(now) });
    const [one, other] = [1, 2].map(() => retryPolicy({ deadlineMs: 1e9, retryConflicts: false, patience }));
    expect(one?.tries(error(429, {}, 1))).toBe(11);
    now = 14_000;
    expect(other?.tries(error(429, {}, 1))).toBe(11);
    now = 14_001;
    expect(other?.tries(error(429, {}, 1))).toBe(1);
    now = 15_001;
    expect(one?.tries(error(429))).toBe(1);
    expect(one?.tries(error(500)), "asks for nothing").toBe(5);
    patience.renew();
    expect(one?.tries(error(429, {}, 1))).toBe(11);
  });
});
