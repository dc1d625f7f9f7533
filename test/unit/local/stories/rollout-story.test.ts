import { expect, test } from "vitest";
import type { ApiSession } from "#local/machine/api-session.ts";
import { RolloutStory } from "#local/stories/rollout-story.ts";

const counts = { Waiting: 0, Rendering: 0, Assigned: 0, Succeeded: 0, Unchanged: 0, Failed: 0, Unreachable: 0 };

/** @param reads - how many of eight clusters are done at each read of the rollout; a later read finds it over. @param end - its phase then. */
function sessionOf(reads: readonly number[], end = "Complete"): ApiSession {
  let at = -1;
  const now = () => reads[Math.max(0, at)] ?? 8;
  const stage = () => ({ ...counts, Succeeded: now(), Assigned: now() === 8 ? 0 : 1, Waiting: Math.max(0, 7 - now()) });
  const startedAt = new Date(Date.now() - 60_000).toISOString();
  const answers: readonly (readonly [RegExp, () => unknown])[] = [
    [/\/syncgroups\/shop$/, () => ({ status: { rollout: 2, revision: "main", state: "Complete", conditions: [] } })],
    [
      /\/rollouts\/2$/,
      () => {
        at++;
        const phase = now() === 8 ? end : "Updating";
        return { status: { phase, message: "", stages: [{ name: "broad", size: 8, counts: stage() }] } };
      },
    ],
    [
      /\/rollout$/,
      () => {
        const updatingTo = { rollout: 2, phase: "Updating", startedAt, counts: stage() };
        return { status: { newest: 2, state: "Rolling", waits: [], stages: [{ name: "broad", updatingTo }] } };
      },
    ],
    [/\/(targets|syncs)\?/, () => ({ items: [], metadata: {} })],
  ];
  return {
    async call<T>(_method: string, path: string): Promise<T> {
      const answer = answers.find(([form]) => form.test(path));
      if (answer === undefined) throw new Error(`nobody answers ${path}`);
      return answer[1]() as T;
    },
    apply: () => Promise.reject(new Error("nothing is applied")),
  };
}

test("the remaining time is printed when three clusters are done, and again when the number of done clusters reaches a power of two", async () => {
  const said: string[] = [];
  const story = new RolloutStory({
    session: sessionOf([1, 2, 3, 3, 5, 8]),
    ...{ namespace: "demo", group: "shop", source: "shop", columns: 90 },
    say: (line = "") => void said.push(line),
    signal: new AbortController().signal,
  });
  await story.follow();
  const lines = said.map((line) => line.replace(/^ *[\d.]+s {2}/, "").replace(/^about [1-9]\d*[smh] /, "about SOME "));
  expect(lines).toEqual([
    "broad 1/8, 1 changing",
    "broad 2/8, 1 changing",
    "broad 3/8, 1 changing",
    "about SOME left in broad, estimated from the 3 clusters that are done",
    "broad 5/8, 1 changing",
    "about SOME left in broad, estimated from the 5 clusters that are done",
    "broad 8/8",
  ]);
});

test("a rollback is followed to its end", async () => {
  const said: string[] = [];
  const story = new RolloutStory({
    session: sessionOf([5, 8], "RolledBack"),
    ...{ namespace: "demo", group: "shop", source: "shop", columns: 90 },
    say: (line = "") => void said.push(line),
    signal: AbortSignal.timeout(4000),
  });
  expect(await story.follow()).toMatchObject({ state: "Complete", message: "" });
});
