import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { apiFixture, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/namespaces/payments/syncgroups/shop";

async function withGroup() {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00Z");
  return api;
}

const operations = async (api: Awaited<ReturnType<typeof withGroup>>) =>
  (await api.table.get(keys.object("payments", "SyncGroup", "shop")))?.operations;

describe("hold and release by the API", () => {
  test("a hold records who, when, why and until when, and wakes the planner", async () => {
    const api = await withGroup();
    const body = { reason: "INC-4711", until: "2026-11-20T10:00:00Z" };
    expect(await api.call("POST", `${path}/hold`, body)).toMatchObject({
      status: 200,
      body: { outcome: "configured" },
    });
    expect(await operations(api)).toEqual({
      hold: {
        by: principal,
        at: "2026-11-20T08:05:00.000Z",
        reason: "INC-4711",
        number: 1,
        until: "2026-11-20T10:00:00.000Z",
      },
    });
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] },
    ]);
  });

  test.each([
    ["a hold without a reason", "hold", {}, "reason"],
    ["a hold that ends in the past", "hold", { reason: "x", until: "2026-11-20T08:00:00Z" }, "until"],
    ["a hold until something that is no time", "hold", { reason: "x", until: "tomorrow" }, "until"],
    ["a release of a rollout 0", "release", { to: 0 }, "to"],
    ["a release with a misspelt field", "release", { too: 1 }, "too"],
  ])("the API refuses %s, names the field and writes nothing", async (_what, verb, body, field) => {
    const api = await withGroup();
    const rows = api.table.all();
    const answer = await api.call("POST", `${path}/${verb}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(field);
    expect(api.table.all()).toEqual(rows);
  });

  test.each([
    ["hold", { reason: "x" }, 200],
    ["release", {}, 200],
    ["retry", { reason: "x" }, 200],
    ["reject", { reason: "x", rollout: 2 }, 200],
    ["promote", { reason: "x", stage: "rest", rollout: 2, snapshot: 0 }, 409],
  ])(
    "a stage run that only a newer version can read: %s is answered with its own status",
    async (verb, body, status) => {
      const api = await withGroup();
      const group = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
      await storeRollout(api, { number: 2, states: { rest: ["Failed"] }, stageRuns: { rest: { phase: "Halted" } } });
      const state = await api.table.get(keys.rolloutState(shop));
      if (group === undefined || state === undefined) throw new Error("the story lacks its rows");
      const stageRun = await api.table.get(keys.stageRun(shop, { rollout: 2, stage: "rest", snapshot: 0 }));
      if (stageRun === undefined) throw new Error(`the story lacks its stage run: ${JSON.stringify(state.stages)}`);
      await api.table.write([
        { put: { ...state, uid: group.uid } as RolloutStateRow },
        { put: { ...stageRun, schema: newestRowSchema + 1 } },
      ]);
      const answer = await api.call("POST", `${path}/${verb}`, body);
      expect(answer.status).toBe(status);
      expect(answer.body.code).toBe(status === 200 ? undefined : "NewerRow");
    },
  );

  test("a release without a hold changes nothing, and one of a single rollout is refused", async () => {
    const api = await withGroup();
    expect((await api.call("POST", `${path}/release`, {})).body.outcome).toBe("unchanged");
    const answer = await api.call("POST", `${path}/release`, { to: 3 });
    expect(answer).toMatchObject({ status: 409, body: { code: "NotHeld" } });
    expect(answer.body.message).toBe("SyncGroup payments/shop is not held, so that rollout 3 needs no release");
  });

  test("a release of a rollout that does not exist names those that do", async () => {
    const api = await withGroup();
    await api.call("POST", `${path}/hold`, { reason: "INC-4711" });
    const answer = await api.call("POST", `${path}/release`, { to: 3 });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe("to: SyncGroup payments/shop has no rollout 3; it keeps none");
  });

  test("a hold of a group that does not exist, or that is being deleted, is refused", async () => {
    const api = await withGroup();
    const missing = await api.call("POST", "/v1/namespaces/payments/syncgroups/shpo/hold", { reason: "x" });
    expect(missing).toMatchObject({ status: 404, body: { code: "NotFound" } });
    await api.call("DELETE", `${path}?confirm=true`);
    const gone = await api.call("POST", `${path}/hold`, { reason: "x" });
    expect(gone).toMatchObject({ status: 409, body: { code: "Deleting" } });
  });
});
