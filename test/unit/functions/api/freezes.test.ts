import { describe, expect, test } from "vitest";
import { ConflictError } from "#shared/base/errors.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import { apiFixture, cluster, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";

async function withFleet() {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [
      source("app"),
      cluster("c1", { env: "prod" }),
      cluster("c2", { env: "dev" }),
      syncGroup("shop", [{ name: "web", source: "app" }]),
    ],
  });
  api.takeMessages();
  api.setNow("2026-11-20T08:05:00Z");
  return api;
}

const path = "/v1/freezes/inc-4711";
const planner = { to: "rollout", owner: { namespace: "payments", kind: "SyncGroup", name: "shop" }, clusters: [] };

describe("a freeze by the API", () => {
  test("a freeze records its author, reason, end and clusters, and wakes the planners", async () => {
    const api = await withFleet();
    const body = { reason: "INC-4711", clusters: "env=prod", until: "2026-11-20T18:00:00Z" };
    const answer = await api.call("POST", path, body);
    expect(answer).toMatchObject({
      status: 200,
      body: { outcome: "created", freeze: { kind: "Freeze", status: { clusters: 1, inForce: true } } },
    });
    const row = await api.table.get(keys.freezeState);
    expect(row?.freezes).toEqual([
      {
        name: "inc-4711",
        clusters: { text: "env=prod", selector: expect.anything() },
        by: principal,
        at: "2026-11-20T08:05:00.000Z",
        reason: "INC-4711",
        until: "2026-11-20T18:00:00.000Z",
      },
    ]);
    expect(api.takeMessages()).toEqual([planner]);
    expect(api.log).toContainEqual(
      expect.objectContaining({
        audit: true,
        verb: "freeze",
        principal: principal,
        reason: "INC-4711",
        name: "inc-4711",
      }),
    );
  });

  test("a freeze that is repeated changes nothing, and one with another end keeps its first author", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711" });
    api.takeMessages();
    const rows = api.table.all();
    api.setNow("2026-11-20T08:06:00Z");
    expect((await api.call("POST", path, { reason: "again" })).body.outcome).toBe("unchanged");
    expect(api.table.all()).toEqual(rows);
    expect(api.takeMessages()).toEqual([]);
    const longer = await api.call("POST", path, { reason: "again", until: "2026-11-20T09:00:00Z" });
    expect(longer.body).toMatchObject({
      outcome: "configured",
      freeze: { metadata: { creationTimestamp: "2026-11-20T08:05:00.000Z" }, spec: { reason: "INC-4711" } },
    });
    // A worker that waits for the former end checks again.
    expect(api.takeMessages()).toEqual([planner, { to: "apply", cluster: "c1" }, { to: "apply", cluster: "c2" }]);
  });

  test("a thaw wakes the clusters that it releases, and no others", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711", clusters: "env=prod" });
    api.takeMessages();
    const answer = await api.call("DELETE", `${path}?reason=repaired`);
    expect(answer.body).toMatchObject({ outcome: "deleted", freeze: { status: { clusters: 1 } } });
    expect(api.takeMessages()).toEqual([planner, { to: "apply", cluster: "c1" }]);
    const row = await api.table.get(keys.freezeState);
    expect(row).toMatchObject({ freezes: [], lifted: [{ name: "inc-4711", lifted: { by: principal } }] });
    expect((await api.call("GET", "/v1/freezes")).body.items).toEqual([]);
    expect(await api.call("DELETE", path)).toMatchObject({
      status: 404,
      body: { code: "NotFound", message: "there is no freeze inc-4711; nothing is frozen" },
    });
  });

  test("a thaw wakes every cluster of a large fleet once", async () => {
    const api = apiFixture();
    const names = Array.from({ length: 130 }, (_, index) => `c${index}`);
    await api.call("POST", "/v1/apply", { documents: names.map((name) => cluster(name)) });
    await api.call("POST", path, { reason: "INC-4711" });
    api.takeMessages();
    expect((await api.call("DELETE", path)).body.freeze.status.clusters).toBe(130);
    const woken = api.takeMessages().map((message) => (message.to === "apply" ? message.cluster : message.to));
    expect(woken.sort()).toEqual(names.sort());
  });

  test("freezes that cannot be read are neither shown as none nor overwritten", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711" });
    await api.table.write([{ update: keys.freezeState, set: { freezes: "all of them" } }]);
    const rows = api.table.all();
    for (const [method, at] of [
      ["GET", "/v1/freezes"],
      ["POST", "/v1/freezes/other"],
      ["DELETE", path],
    ] as const) {
      const answer = await api.call(method, at, method === "POST" ? { reason: "x" } : undefined);
      expect(answer).toMatchObject({ status: 503, body: { code: "FreezesUnreadable" } });
    }
    expect(api.table.all()).toEqual(rows);
  });

  test("a freeze is in the list, and on the clusters that it covers, until its time has passed", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711", clusters: "env=prod", until: "2026-11-20T09:00:00Z" });
    const frozen = async () =>
      (await api.call("GET", "/v1/clusters")).body.items.map(
        (one: { metadata: { name: string }; status: { frozen?: unknown } }) => [one.metadata.name, one.status.frozen],
      );
    const by = { name: "inc-4711", by: principal, reason: "INC-4711", until: "2026-11-20T09:00:00.000Z" };
    expect(await frozen()).toEqual([
      ["c1", by],
      ["c2", undefined],
    ]);
    expect((await api.call("GET", "/v1/freezes")).body.items).toMatchObject([
      { metadata: { name: "inc-4711" }, status: { clusters: 1 } },
    ]);
    api.setNow("2026-11-20T09:00:01Z");
    expect((await api.call("GET", "/v1/freezes")).body.items).toEqual([]);
    expect(await frozen()).toEqual([
      ["c1", undefined],
      ["c2", undefined],
    ]);
    expect((await api.call("POST", path, { reason: "again" })).body.outcome).toBe("created");
  });

  test.each([
    ["no reason", "inc-4711", {}, "reason"],
    ["an end that has passed", "inc-4711", { reason: "r", until: "2026-11-20T08:00:00Z" }, "has passed"],
    ["an end that is no time", "inc-4711", { reason: "r", until: "tomorrow" }, "until: must be a time"],
    ["a malformed selector", "inc-4711", { reason: "r", clusters: "env=prod,," }, "clusters:"],
    ["an invalid name", "INC 4711", { reason: "r" }, "a freeze cannot be called"],
  ])("a freeze with %s is refused", async (_what, name, body, message) => {
    const api = await withFleet();
    const answer = await api.call("POST", `/v1/freezes/${encodeURIComponent(name)}`, body);
    expect(answer.body.message ?? answer.body).toContain(message);
    expect(await api.table.get(keys.freezeState)).toBeUndefined();
  });

  test("a freeze of the same name cannot cover other clusters", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711" });
    expect(await api.call("POST", path, { reason: "r", clusters: "env=dev" })).toMatchObject({
      status: 409,
      body: { message: "freeze inc-4711 covers every cluster already; give this one another name" },
    });
  });
});

describe("the stored freezes", () => {
  const row = (api: ReturnType<typeof apiFixture>) => api.table.get(keys.freezeState);

  test("a freeze takes another end, or none, and is stored once", async () => {
    const api = await withFleet();
    await api.call("POST", path, { reason: "INC-4711" });
    const until = "2026-11-20T09:00:00.000Z";
    const answer = await api.call("POST", path, { reason: "x", until });
    expect(answer.body.freeze.spec).toMatchObject({ reason: "INC-4711", until });
    expect((await row(api))?.freezes).toMatchObject([{ reason: "INC-4711", until }]);
    expect((await api.call("POST", path, { reason: "x" })).body.outcome).toBe("configured");
    expect((await row(api))?.freezes).toHaveLength(1);
    expect((await row(api))?.freezes[0]).not.toHaveProperty("until");
    expect((await row(api))?.version).toBe(3);
  });

  test("a freeze that ends now is refused", async () => {
    const api = await withFleet();
    const body = { reason: "x", until: "2026-11-20T08:05:00Z" };
    expect(await api.call("POST", path, body)).toMatchObject({ status: 400 });
  });

  test("a new freeze is added to the others, and the refusal of a thaw names the freezes that there are", async () => {
    const api = await withFleet();
    await api.call("POST", "/v1/freezes/b", { reason: "x" });
    api.setNow("2026-11-20T08:06:00Z");
    expect((await api.call("POST", "/v1/freezes/a", { reason: "x" })).body.outcome).toBe("created");
    const listed = (await api.call("GET", "/v1/freezes")).body.items;
    expect(listed.map((one: { metadata: { name: string } }) => one.metadata.name)).toEqual(["b", "a"]);
    await api.call("POST", "/v1/freezes/b", { reason: "x", until: "2026-11-20T09:00:00Z" });
    expect((await api.call("GET", "/v1/freezes")).body.items).toMatchObject([
      { metadata: { name: "b" } },
      { metadata: { name: "a" } },
    ]);
    const answer = await api.call("DELETE", path);
    expect(answer).toMatchObject({ status: 404, body: { message: "there is no freeze inc-4711; there are a, b" } });
    await api.call("DELETE", "/v1/freezes/a");
    expect((await row(api))?.freezes.map(({ name }) => name)).toEqual(["b"]);
    expect(api.log.filter(({ name }) => name === "a").map(({ verb }) => verb)).toEqual(["freeze", "thaw"]);
  });

  test("fifty freezes are the most, and their ends can still be changed", async () => {
    const api = await withFleet();
    for (let index = 0; index < 50; index++) await api.call("POST", `/v1/freezes/f${index}`, { reason: "x" });
    const more = await api.call("POST", "/v1/freezes/more", { reason: "x" });
    expect(more).toMatchObject({
      status: 409,
      body: { code: "Conflict", message: expect.stringContaining("f0, f1, f2") },
    });
    const until = "2026-11-20T09:00:00Z";
    expect(await api.call("POST", "/v1/freezes/f7", { reason: "x", until })).toMatchObject({ status: 200 });
    expect((await row(api))?.freezes).toHaveLength(50);
  });

  test("ended freezes are kept for a week, whether they expired or were lifted, and at most the newest fifty", async () => {
    const api = await withFleet();
    await api.call("POST", "/v1/freezes/timed", { reason: "x", until: "2026-11-20T09:00:00Z" });
    api.setNow("2026-11-20T10:00:00Z");
    await api.call("POST", "/v1/freezes/lifted", { reason: "x" });
    expect((await row(api))?.freezes.map(({ name }) => name)).toEqual(["lifted"]);
    expect((await row(api))?.lifted).toMatchObject([
      { name: "timed", lifted: { by: principal, at: "2026-11-20T09:00:00.000Z" } },
    ]);
    await api.call("DELETE", "/v1/freezes/lifted");
    expect((await row(api))?.lifted.map(({ name }) => name)).toEqual(["timed", "lifted"]);
    api.setNow("2026-11-27T09:30:00Z");
    await api.call("POST", "/v1/freezes/later", { reason: "x" });
    expect((await row(api))?.lifted.map(({ name }) => name)).toEqual(["lifted"]);
    for (let index = 0; index < 55; index++) {
      await api.call("POST", `/v1/freezes/f${index}`, { reason: "x" });
      await api.call("DELETE", `/v1/freezes/f${index}`);
    }
    await api.call("POST", "/v1/freezes/last", { reason: "x" });
    const names = (await row(api))?.lifted.map(({ name }) => name);
    expect(names).toHaveLength(50);
    expect([names?.at(0), names?.at(-1)]).toEqual(["f5", "f54"]);
  });

  test("a freeze is tried several times when others write the row, and once after any other failure", async () => {
    const table = new MemoryTable();
    let failures = 0;
    let failure: Error = new ConflictError("somebody else wrote it");
    const api = apiFixture(
      table,
      refusingWrites(table, () => (failures-- > 0 ? failure : undefined)),
    );
    failures = 5;
    expect(await api.call("POST", path, { reason: "x" })).toMatchObject({ status: 200, body: { outcome: "created" } });
    failures = 1000;
    const conflict = await api.call("POST", "/v1/freezes/other", { reason: "x" });
    expect(conflict).toMatchObject({ status: 409, body: { code: "Conflict" } });
    expect(failures).toBe(994);
    failures = 1000;
    failure = new Error("the table is gone");
    expect(await api.call("POST", "/v1/freezes/other", { reason: "x" })).toMatchObject({ status: 500 });
    expect(failures).toBe(999);
  });
});
