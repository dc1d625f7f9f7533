import { beforeEach, describe, expect, test } from "vitest";
import { SharedQuestions } from "#shared/adapters/aws/shared-questions.ts";

let now: number;
let asked: number;
let questions: SharedQuestions<string>;
beforeEach(() => {
  now = Date.UTC(2026, 0, 1);
  asked = 0;
  questions = new SharedQuestions({ now: () => new Date(now) });
});

/** @param code - the code of the failure; without one the question is answered. */
function ask(id: string, code?: string): Promise<string> {
  return questions.ask(id, async () => {
    asked += 1;
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    return "yes";
  });
}

describe("a failed question", () => {
  test("every caller gets the same failure for half a minute", async () => {
    for (let times = 0; times < 3; times += 1) await expect(ask("a", "AccessDenied")).rejects.toThrow("AccessDenied");
    now += 29_999;
    await expect(ask("a")).rejects.toThrow("AccessDenied");
    expect([await ask("b"), asked]).toEqual(["yes", 2]);
    now += 1;
    expect([await ask("a"), asked]).toEqual(["yes", 3]);
  });

  test("a question that failed for want of a file descriptor is asked again at once", async () => {
    await expect(ask("a", "EMFILE")).rejects.toThrow("EMFILE");
    expect(await ask("a")).toBe("yes");
  });
});

test("callers that ask the same question at the same time share one request", async () => {
  expect(await Promise.all([ask("a"), ask("a"), ask("a")])).toEqual(["yes", "yes", "yes"]);
  expect(asked).toBe(1);
});
