/** The renderings that a row remembers from earlier assignments. */
import { describe, expect, test } from "vitest";
import { accepted, forgotten, nextDesired } from "#shared/fleet/rows/lineage.ts";
import type { Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

type Before = Pick<SyncRow, "desired" | "observed">;

const given = (renderDigest: string, attempt: number): Assigned => desiredOf({ renderDigest, attempt });

function appliedBy(attempt: number, unsettled: readonly string[] = []) {
  const applied = { renderDigest: "held", revision: "r", attempt, at: "2026-11-21T08:00:00.000Z", unsettled };
  return observedOf({ attempt, applied });
}

/** Assigns the renderings one after the other; each application is observed before the next assignment. */
function assigned(...steps: readonly { readonly digest: string; readonly applied?: true }[]): Before {
  let row: Before | undefined;
  for (const [index, { digest, applied }] of steps.entries()) {
    const attempt = index + 1;
    const { observed } = row ?? {};
    const desired = nextDesired(given(digest, attempt), row, `token-${attempt}`);
    const seen = applied === true ? appliedBy(attempt) : observed;
    row = seen === undefined ? { desired } : { desired, observed: seen };
  }
  if (row === undefined) throw new Error("nothing was assigned");
  return row;
}

describe("the tried renderings of an assignment", () => {
  test.each<[string, Before, readonly string[] | undefined]>([
    ["with no earlier one", assigned({ digest: "a" }), undefined],
    ["after one that was applied", assigned({ digest: "a", applied: true }, { digest: "b" }), undefined],
    ["after one that was not", assigned({ digest: "a" }, { digest: "b" }), ["a"]],
    [
      "after several, of which the first was applied",
      assigned({ digest: "a", applied: true }, { digest: "b" }, { digest: "c" }, { digest: "d" }),
      ["b", "c"],
    ],
    [
      "after a repeated one, each once and the newest last",
      assigned({ digest: "a" }, { digest: "b" }, { digest: "a" }, { digest: "c" }),
      ["b", "a"],
    ],
    ["after the same one, which was not applied", assigned({ digest: "a" }, { digest: "a" }), undefined],
    [
      "after many, as many as a cluster remembers",
      assigned(...names(25)),
      names(25)
        .slice(4, 24)
        .map(({ digest }) => digest),
    ],
  ])("an assignment %s remembers the right tried renderings", (_what, { desired }, tried) => {
    expect(desired.tried).toEqual(tried);
  });

  test("tried renderings are kept through a deletion and through an orphaning, after which the cluster may return", () => {
    const before = assigned({ digest: "a" }, { digest: "b" });
    for (const action of ["delete", "orphan"] as const) {
      const { renderDigest: _none, ...rest } = given("", 3);
      const desired = nextDesired({ ...rest, action }, before, "token-3");
      expect(desired.tried).toEqual(["a", "b"]);
      expect(nextDesired(given("c", 4), { ...before, desired }, "token-4").tried).toEqual(["a", "b"]);
    }
  });

  test("tried renderings are kept when a cluster's memory is accepted, and dropped when the row is forgotten", () => {
    const { desired } = assigned({ digest: "a" }, { digest: "b" });
    const remembered = { attempt: 7, fence: 1, inventory: "sha256:i" };
    const observed = observedOf({ attempt: 2, remembered });
    const act = { by: "ana", at: "2026-11-21T08:00:00.000Z" };
    expect(accepted({ desired, observed } as SyncRow, act).desired.tried).toEqual(["a", "b"]);
    expect(forgotten({ desired, observed }, act.at)).not.toHaveProperty("tried");
  });
});

function names(count: number): readonly { readonly digest: string }[] {
  return Array.from({ length: count }, (_, index) => ({ digest: `d${index}` }));
}
