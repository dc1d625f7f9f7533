import { describe, expect, test } from "vitest";
import { apiFixture, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";

const path = "/v1/namespaces/payments/syncgroups/shop/promote";
const body = { reason: "INC-1", stage: "all", rollout: 1, snapshot: 1 };

describe("a promote by the API", () => {
  test.each([
    ["no reason", { ...body, reason: undefined }, "reason"],
    ["no stage", { ...body, stage: undefined }, "stage"],
    ["no number", { ...body, rollout: undefined }, "rollout"],
    ["no snapshot", { ...body, snapshot: undefined }, "snapshot"],
    ["a misspelt field", { ...body, number: 1 }, "number"],
    ["a stage that does not exist", body, "stage: SyncGroup payments/shop has no stage all; it has none yet"],
  ])("the API refuses %s, names the field and writes nothing", async (_what, asked, said) => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", {
      documents: [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])],
    });
    const rows = api.table.all();
    const answer = await api.call("POST", path, asked);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(said);
    expect(api.table.all()).toEqual(rows);
  });
});
