import { beforeEach, describe, expect, test } from "vitest";
import { rolloutStateFor } from "#functions/rollout/read/read-owner.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RejectedRollout } from "#shared/fleet/rows/rollout-rows.ts";
import { apiFixture, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";

const path = "/v1/namespaces/payments/syncgroups/shop";
const owner = { namespace: "payments", kind: "SyncGroup", name: "shop" } as const;

let api: ReturnType<typeof apiFixture>;

const row = async () => {
  const found = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
  if (found === undefined) throw new Error("the group is gone");
  return found;
};

/** The planner has given rollouts 1 and 2 their numbers. */
async function planned(rejected: readonly RejectedRollout[] = [], handledRejection = 0): Promise<void> {
  const before = await api.table.get(keys.rolloutState(owner));
  const ledger = [2, 1].map((number) => ({ number, identity: `i${number}`, revision: `r${number}`, at: "" }));
  const state = { ...rolloutStateFor(await row(), owner, before), last: 2, ledger, rejected, handledRejection };
  await api.table.write([{ put: { ...state, version: state.version + 1 } }]);
}

beforeEach(async () => {
  api = apiFixture();
  const documents = [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])];
  await api.call("POST", "/v1/apply", { documents });
  await planned();
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00Z");
});

const at = "2026-11-20T08:05:00.000Z";
const reason = "INC-4711";

describe("reject and unreject by the API", () => {
  test("a rejection records who, when, why and which rollout, and wakes the planner", async () => {
    const answer = await api.call("POST", `${path}/reject`, { rollout: 2, reason });
    expect(answer).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect((await row()).operations).toEqual({
      rejections: [{ by: principal, at, reason, number: 1, rollout: 2, do: "reject" }],
    });
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner, clusters: [] }]);
  });

  test("a second rejection changes nothing, before the planner has carried the first one out, and after it", async () => {
    await api.call("POST", `${path}/reject`, { rollout: 2, reason });
    expect((await api.call("POST", `${path}/reject`, { rollout: 2, reason })).body.outcome).toBe("unchanged");
    await planned([{ rollout: 2, by: principal, at }], 1);
    expect((await api.call("POST", `${path}/reject`, { rollout: 2, reason })).body.outcome).toBe("unchanged");
  });

  test("a rejection of a rollout that has the plan of another rejected one is recorded", async () => {
    await planned([
      { rollout: 1, by: principal, at },
      { rollout: 2, by: principal, at, like: 1 },
    ]);
    expect((await api.call("POST", `${path}/reject`, { rollout: 2, reason })).body.outcome).toBe("configured");
    expect((await row()).operations.rejections).toMatchObject([{ number: 1, rollout: 2, do: "reject" }]);
    expect((await api.call("POST", `${path}/reject`, { rollout: 2, reason })).body.outcome).toBe("unchanged");
  });

  test("an unreject replaces the act about its rollout, and leaves the others", async () => {
    await api.call("POST", `${path}/reject`, { rollout: 1, reason });
    await api.call("POST", `${path}/reject`, { rollout: 2, reason });
    await api.call("POST", `${path}/unreject`, { rollout: 1, reason });
    expect((await row()).operations.rejections).toMatchObject([
      { number: 2, rollout: 2, do: "reject" },
      { number: 3, rollout: 1, do: "unreject" },
    ]);
    expect((await api.call("POST", `${path}/unreject`, { rollout: 1, reason })).body.outcome).toBe("unchanged");
  });

  test("a rollout that is past and still rejected is admitted again", async () => {
    await planned([{ rollout: 9, by: principal, at }]);
    expect((await api.call("POST", `${path}/unreject`, { rollout: 9, reason })).body.outcome).toBe("configured");
    const { body } = await api.call("POST", `${path}/unreject`, { rollout: 8, reason });
    expect(body.message).toContain("it keeps 2, 1, 9");
  });

  test("a rejected rollout is not released from a hold", async () => {
    await api.call("POST", `${path}/hold`, { reason });
    await api.call("POST", `${path}/reject`, { rollout: 2, reason });
    const answer = await api.call("POST", `${path}/release`, { to: 2 });
    expect(answer).toMatchObject({ status: 409, body: { code: "RolloutRejected" } });
    expect(answer.body.message).toBe("to: rollout 2 of SyncGroup payments/shop is rejected; unreject it first");
  });

  test.each([
    ["a rejection without a reason", "reject", { rollout: 2 }, "reason"],
    ["a rejection without a rollout", "reject", { reason }, "rollout"],
    [
      "a rejection of a rollout that does not exist",
      "reject",
      { rollout: 3, reason },
      "rollout: SyncGroup payments/shop has no rollout 3; it keeps 2, 1",
    ],
    ["an unreject without a reason", "unreject", { rollout: 2 }, "reason: is required"],
    [
      "an unreject of a rollout that never existed",
      "unreject",
      { rollout: 99, reason },
      "rollout: SyncGroup payments/shop has no rollout 99; it keeps 2, 1",
    ],
  ])("the API refuses %s, names the field and writes nothing", async (_what, verb, body, message) => {
    const rows = api.table.all();
    const answer = await api.call("POST", `${path}/${verb}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(message);
    expect(api.table.all()).toEqual(rows);
  });
});
