/** A Sync that is ready while some objects stay drifted is shown as Drifted, and never as healthy. */
import { expect, test } from "vitest";
import { groupSyncObject } from "#shared/fleet/api/objects.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import { objectState } from "#shared/words/object-state.ts";
import { isGood } from "#shared/words/state-words.ts";
import { apiFixture, cluster, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const since = "2026-11-20T08:00:00.000Z";
const leftAlone = [{ object: "Deployment shop/web", reason: "Drifted", message: "somebody undoes spec.replicas" }];
const conditions = [
  { type: "Drifted", status: "True", reason: "CorrectionsUndone", message: "somebody undoes it", since },
] as const;

function drifted(name: string): SyncRow {
  const row = syncRow(name, "shop.web", { phase: "Ready" });
  if (row.observed === undefined) throw new Error("the fixture has an observation");
  const seen = { ...row, observed: { ...row.observed, leftAlone, conditions } };
  return { ...seen, stateSk: stateIndex.sk(indexedState(seen), seen) };
}

async function withDrift() {
  const api = apiFixture();
  const documents = [source("app"), cluster("c1"), cluster("c2"), syncGroup("shop", [{ name: "web", source: "app" }])];
  await api.call("POST", "/v1/apply", { documents });
  await api.table.write([{ put: drifted("c1") }, { put: syncRow("c2", "shop.web", { phase: "Ready" }) }]);
  return api;
}

test("a Sync whose corrections are undone is Drifted in each list, and the state Drifted finds it", async () => {
  const api = await withDrift();
  const states = async (path: string) =>
    (await api.call("GET", path)).body.items.map((item: { spec: { cluster: string }; status: { state: string } }) => [
      item.spec.cluster,
      item.status.state,
    ]);
  const both = [
    ["c1", "Drifted"],
    ["c2", "Ready"],
  ];
  expect(await states("/v1/syncs")).toEqual(both);
  expect(await states("/v1/namespaces/payments/syncgroups/shop/syncs")).toEqual(both);
  expect(await states("/v1/syncs?state=Drifted")).toEqual([["c1", "Drifted"]]);
  expect(await states("/v1/syncs?state=Ready")).toEqual([["c2", "Ready"]]);
});

test("a cluster does not count a drifted Sync as ready, and is Drifted itself", async () => {
  const api = await withDrift();
  const { body } = await api.call("GET", "/v1/clusters/c1");
  expect(body.status.syncs).toMatchObject({ total: 1, ready: 0, others: [{ state: "Drifted", count: 1 }] });
  const reachable = [{ type: "Reachable", status: "True", reason: "Reached", message: "", since }];
  const state = objectState({ ...body, status: { ...body.status, conditions: reachable } });
  expect(state).toMatchObject({ word: "Drifted", remark: "1 Drifted: payments/shop.web" });
});

test("a drifted Sync is not healthy, and names the object and the reason", () => {
  const state = objectState(groupSyncObject(drifted("c1"), undefined));
  expect(isGood(state.word)).toBe(false);
  expect(state.remark).toContain("Deployment shop/web has drifted: somebody undoes spec.replicas");
});
