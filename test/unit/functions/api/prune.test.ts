import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { apiFixture, principal, sync } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const path = "/v1/namespaces/payments/syncs/shop.web/prune";
const key = keys.sync("c1", "payments", "shop.web");
const old = { id: { group: "", kind: "ConfigMap", namespace: "shop", name: "old" }, uid: "uid-old", member: true };
const copy = { ...old, id: { ...old.id, name: "copy" }, uid: "uid-copy", member: false };
const kept = {
  ...old,
  id: { ...old.id, name: "kept" },
  uid: "uid-kept",
  keep: "it is marked starling.dev/prune: disabled",
};

async function withForeign() {
  const api = apiFixture();
  const row = syncRow("c1", "shop.web");
  const observed = { ...row.observed, foreign: [old, kept, copy] } as Observed;
  await api.table.write([{ put: { ...row, observed } as SyncRow }]);
  api.setNow("2026-11-20T08:05:00Z");
  const stored = () => api.table.get(key);
  return { api, stored };
}

describe("a prune of objects that no inventory has", () => {
  test("a prune asks for confirmation with names, then records who, when, why and which uids, and is due at once", async () => {
    const { api, stored } = await withForeign();
    const before = await stored();
    const body = { cluster: "c1", uids: ["uid-old"], reason: "restored" };
    expect(await api.call("POST", path, body)).toMatchObject({
      status: 409,
      body: {
        code: "ConfirmationRequired",
        message:
          "pruning Sync payments/shop.web deletes 1 object that is not recorded from cluster c1: ConfigMap shop/old",
      },
    });
    expect(await stored()).toEqual(before);

    expect(await api.call("POST", path, { ...body, confirm: true })).toMatchObject({
      status: 200,
      body: { outcome: "configured", objects: [{ uid: "uid-old" }] },
    });
    const after = await stored();
    const at = "2026-11-20T08:05:00.000Z";
    const prune = { by: principal, at, reason: "restored", number: 1, objects: [{ id: old.id, uid: "uid-old" }] };
    expect(after?.operations).toEqual({ prune });
    expect(after?.dueKey).toMatch(`${at}#`);
    // The API changes nothing that the planner and the worker wrote.
    expect(after).toMatchObject({ desired: before?.desired, observed: before?.observed });

    expect(await api.call("POST", path, { ...body, confirm: true })).toMatchObject({ body: { outcome: "unchanged" } });
    expect(await stored()).toEqual(after);
    const shown = await api.call("GET", "/v1/namespaces/payments/syncs/shop.web?cluster=c1");
    expect(shown.body).toMatchObject({ status: { prune: { ...prune, handled: false } } });
  });

  test("a prune can be repeated when the worker has done it and the object exists again", async () => {
    const { api, stored } = await withForeign();
    const body = { cluster: "c1", uids: ["uid-old"], confirm: true };
    await api.call("POST", path, body);
    const row = await stored();
    if (row === undefined) throw new Error("it was stored");
    const observed = { ...row.observed, handledPrune: 1 } as Observed;
    await api.table.write([{ put: { ...row, observed } as SyncRow }]);
    expect(await api.call("POST", path, body)).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect((await stored())?.operations?.prune?.number).toBe(2);
  });

  test.each([
    ["that the worker did not report", "uid-other"],
    ["of an object that only has a copy of the label", "uid-copy"],
    ["of an object that is marked to stay", "uid-kept"],
  ])("a prune of a uid %s is refused", async (_name, uid) => {
    const { api, stored } = await withForeign();
    const before = await stored();
    const answer = await api.call("POST", path, { cluster: "c1", uids: ["uid-old", uid], confirm: true });
    expect(answer).toMatchObject({ status: 409, body: { code: "ForeignChanged" } });
    expect(await stored()).toEqual(before);
  });

  test("a prune is refused where the worker reported no unrecorded object", async () => {
    const { api, stored } = await withForeign();
    for (const observed of [syncRow("c1", "shop.web").observed, undefined]) {
      const { observed: _seen, ...row } = syncRow("c1", "shop.web");
      await api.table.write([{ put: { ...row, ...defined({ observed }), version: 1 } as SyncRow }]);
      const before = await stored();
      const answer = await api.call("POST", path, { cluster: "c1", uids: ["uid-old"], confirm: true });
      expect(answer).toMatchObject({ status: 409, body: { code: "ForeignChanged" } });
      expect(await stored()).toEqual(before);
    }
  });

  test.each([
    [{ cluster: "c2", uids: ["uid-old"], confirm: true }, 404, "NotFound"],
    [{ uids: ["uid-old"], confirm: true }, 400, "BadRequest"],
    [{ cluster: "c1", uids: [], confirm: true }, 400, "BadRequest"],
  ])("a prune request of %j is refused", async (body, status, code) => {
    const { api } = await withForeign();
    expect(await api.call("POST", path, body)).toMatchObject({ status, body: { code } });
  });
});

describe("the Sync and the objects of a prune", () => {
  const two = { ...old, id: { ...old.id, name: "two" }, uid: "uid-two" };
  const three = { ...old, id: { ...old.id, name: "three" }, uid: "uid-three" };

  async function withThree() {
    const { api, stored } = await withForeign();
    const row = await stored();
    if (row === undefined) throw new Error("it was stored");
    const observed = { ...row.observed, foreign: [old, two, three] } as Observed;
    await api.table.write([{ put: { ...row, observed } as SyncRow }]);
    return { api, stored };
  }

  test("a prune with other objects is a new request, and one with the same objects in another order is the same request", async () => {
    const { api, stored } = await withThree();
    const ask = async (...uids: readonly string[]) =>
      (await api.call("POST", path, { cluster: "c1", uids, confirm: true })).body.outcome;
    const chosen = async () => (await stored())?.operations?.prune?.objects.map(({ uid }) => uid);
    expect(await ask("uid-old", "uid-two")).toBe("configured");
    expect(await ask("uid-two", "uid-old")).toBe("unchanged");
    expect(await ask("uid-old", "uid-three")).toBe("configured");
    expect(await chosen()).toEqual(["uid-old", "uid-three"]);
    expect(await ask("uid-old")).toBe("configured");
    expect(await chosen()).toEqual(["uid-old"]);
    const verbs = api.log.map(({ verb }) => verb);
    expect(verbs).toEqual([
      "prune (cluster=c1, uids=uid-old,uid-two)",
      "prune (cluster=c1, uids=uid-old,uid-three)",
      "prune (cluster=c1, uids=uid-old)",
    ]);
  });

  test("a prune finds the cluster of a Sync that a user wrote, and asks for the cluster of a group's Sync", async () => {
    const { api } = await withForeign();
    await api.call("POST", "/v1/apply", { documents: [sync("extra", { cluster: "c1", source: "app" })] });
    const row = syncRow("c1", "extra");
    await api.table.write([{ put: { ...row, observed: { ...row.observed, foreign: [old] } } as SyncRow }]);
    const body = { uids: ["uid-old"], confirm: true };
    const prune = (name: string) => api.call("POST", `/v1/namespaces/payments/syncs/${name}/prune`, body);
    expect(await prune("extra")).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect(await prune("none")).toMatchObject({ status: 404, body: { code: "NotFound" } });
    expect(await prune("shop.web")).toMatchObject({ status: 400, body: { code: "BadRequest" } });
  });
});
