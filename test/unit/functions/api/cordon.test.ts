/** Cordons as the API writes and shows them. */
import { describe, expect, test } from "vitest";
import { cordonsAmong } from "#shared/fleet/rows/cordons-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { objectState } from "#shared/words/object-state.ts";
import {
  type ApiFixture,
  apiFixture,
  cluster,
  principal,
  source,
  syncGroup,
} from "#test/unit/functions/api/api-fixture.ts";

const [reason, path] = ["INC-4711", "/v1/clusters/prod-1"];

async function withCluster(): Promise<ApiFixture> {
  const api = apiFixture();
  const group = syncGroup("shop", [{ name: "web", source: "app" }]);
  await api.call("POST", "/v1/apply", { documents: [cluster("prod-1", { env: "prod" }), source("app"), group] });
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00.000Z");
  return api;
}

const cordons = async (api: ApiFixture) => cordonsAmong(await api.table.getMany([keys.cordonState]));
const stateIn = async (api: ApiFixture) => objectState((await api.call("GET", path)).body as never);
const schemas = async (api: ApiFixture) =>
  (await api.table.getMany([keys.cluster("prod-1"), keys.fleet("prod-1")])).map(({ schema }) => schema);

describe("a cordon by the API", () => {
  test("a cordon records who, when, why and until when, and tells the planner about the cluster", async () => {
    const api = await withCluster();
    const body = { reason, until: "2026-11-20T10:00:00Z" };
    const cordoned = { by: principal, at: "2026-11-20T08:05:00.000Z", reason, until: "2026-11-20T10:00:00.000Z" };
    expect(await api.call("POST", `${path}/cordon`, body)).toMatchObject({
      status: 200,
      body: { outcome: "configured", cordoned: { ...cordoned, number: 1 } },
    });
    expect(await cordons(api)).toEqual([{ cluster: "prod-1", ...cordoned }]);
    const owner = { namespace: "payments", kind: "SyncGroup", name: "shop" };
    expect(api.takeMessages()).toEqual([{ to: "rollout", owner, clusters: ["prod-1"] }]);
  });

  test("a cordon is shown with the command that ends it, while it lasts", async () => {
    const api = await withCluster();
    await api.call("POST", `${path}/cordon`, { reason, until: "2026-11-20T10:00:00Z" });
    expect(await stateIn(api)).toMatchObject({
      word: "Cordoned",
      since: "2026-11-20T08:05:00.000Z",
      remark: expect.stringMatching(/: INC-4711, until 2026-11-20T10:00:00.000Z; run `starling uncordon prod-1`$/),
    });
    const { items } = (await api.call("GET", "/v1/clusters")).body as { items: readonly { status: object }[] };
    expect(items).toMatchObject([{ status: { cordoned: { reason } } }]);
    api.setNow("2026-11-20T10:00:00.000Z");
    expect((await stateIn(api)).word).toBe("Pending");
  });

  test("a cordon keeps the first person when it is repeated, and takes another end", async () => {
    const api = await withCluster();
    await api.call("POST", `${path}/cordon`, { reason });
    expect((await api.call("POST", `${path}/cordon`, { reason: "other" })).body.outcome).toBe("unchanged");
    const until = "2026-11-20T12:00:00.000Z";
    expect((await api.call("POST", `${path}/cordon`, { reason: "other", until })).body.outcome).toBe("configured");
    expect(await cordons(api)).toMatchObject([{ reason, until }]);
    api.setNow("2026-11-20T13:00:00.000Z");
    await api.call("POST", `${path}/cordon`, { reason: "anew" });
    expect(await cordons(api)).toEqual([
      { cluster: "prod-1", by: principal, at: "2026-11-20T13:00:00.000Z", reason: "anew" },
    ]);
  });

  test("a cordon is not touched when the document is applied again, and is gone with the Cluster", async () => {
    const api = await withCluster();
    await api.call("POST", `${path}/cordon`, { reason });
    const again = { ...cluster("prod-1"), metadata: { name: "prod-1", labels: { env: "other" } } };
    await api.call("POST", "/v1/apply", { documents: [again] });
    expect(await cordons(api)).toHaveLength(1);
    expect(await schemas(api)).toEqual([newestRowSchema, newestRowSchema]);
    await api.call("DELETE", `${path}?confirm=true`);
    expect(await cordons(api)).toEqual([]);
  });

  test("a cordon keeps functions of the version before away from the cluster, until the uncordon", async () => {
    const api = await withCluster();
    await api.call("POST", `${path}/cordon`, { reason });
    expect(await schemas(api)).toEqual([newestRowSchema, newestRowSchema]);
    expect(await api.call("POST", `${path}/uncordon`, { reason })).toMatchObject({ body: { outcome: "configured" } });
    expect(await schemas(api)).toEqual([rowSchema, rowSchema]);
    expect(await cordons(api)).toEqual([]);
    expect((await api.call("POST", `${path}/uncordon`, {})).body.outcome).toBe("unchanged");
  });

  test("a cordon is refused when 50 clusters are cordoned; cordons that have ended do not count, and are forgotten", async () => {
    const api = apiFixture();
    const names = Array.from({ length: 52 }, (_, index) => `prod-${index}`);
    await api.call("POST", "/v1/apply", { documents: names.map((name) => cluster(name)) });
    api.setNow("2026-11-20T08:05:00.000Z");
    const until = "2026-11-20T09:00:00Z";
    await api.call("POST", "/v1/clusters/prod-50/cordon", { reason, until });
    for (const name of names.slice(0, 49)) await api.call("POST", `/v1/clusters/${name}/cordon`, { reason });
    const refused = await api.call("POST", "/v1/clusters/prod-51/cordon", { reason });
    expect(refused).toMatchObject({ status: 409, body: { code: "Conflict" } });
    expect(refused.body.message).toContain("50 clusters are cordoned, which is the most; uncordon one, or freeze");
    api.setNow("2026-11-20T09:00:00.000Z");
    expect((await api.call("POST", "/v1/clusters/prod-51/cordon", { reason })).status).toBe(200);
    expect((await cordons(api)).map((one) => one.cluster)).not.toContain("prod-50");
  });

  test.each([
    ["a cordon without a reason", "cordon", {}, "reason"],
    ["a cordon that ends in the past", "cordon", { reason, until: "2026-11-20T08:00:00Z" }, "until"],
    ["a cordon until something that is no time", "cordon", { reason, until: "tomorrow" }, "until"],
    ["an uncordon with a misspelt field", "uncordon", { reasons: "x" }, "reasons"],
  ])("the API refuses %s, names the field and writes nothing", async (_what, verb, body, field) => {
    const api = await withCluster();
    const rows = api.table.all();
    const answer = await api.call("POST", `${path}/${verb}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(field);
    expect(api.table.all()).toEqual(rows);
  });

  test("a cordon of a cluster that is not registered is refused", async () => {
    const api = await withCluster();
    expect(await api.call("POST", "/v1/clusters/none/cordon", { reason })).toMatchObject({ status: 404 });
    expect(await api.call("POST", "/v1/clusters/none/uncordon", {})).toMatchObject({ status: 404 });
  });
});
