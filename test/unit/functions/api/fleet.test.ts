import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { apiFixture, cluster, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { storeRollout } from "#test/unit/functions/api/row-fixture.ts";

const webGroup = (name: string) => syncGroup(name, [{ name: "web", source: "app", path: "web" }]);

async function fleetOf(groups: number, clusters: number) {
  const memory = new MemoryTable({ pageItems: 1000 });
  const { table, counts } = countedTable(memory);
  const api = apiFixture(memory, table);
  for (let at = 0; at < groups; at++) {
    const name = `g${at}`;
    await api.call("POST", "/v1/apply", { documents: [source("app"), cluster("c1", { env: "prod" }), webGroup(name)] });
    const row = (await api.call("GET", `/v1/namespaces/payments/syncgroups/${name}`)).body;
    await storeRollout(api, {
      number: 2,
      states: { canary: Array(clusters / 10).fill("Succeeded"), rest: Array((clusters * 9) / 10).fill("Waiting") },
      owner: { namespace: "payments", kind: "SyncGroup", name },
      rolloutState: { uid: row.metadata.uid },
    });
  }
  const before = { ...counts };
  const { status, body } = await api.call("GET", "/v1/fleet");
  return { status, body, requests: counts.requests - before.requests, rows: counts.rowsRead - before.rowsRead };
}

test("the fleet lists every group with its versions, in as many requests for many clusters as for few", async () => {
  const few = await fleetOf(3, 10);
  const many = await fleetOf(3, 1000);
  expect(few.status).toBe(200);
  expect(many.body.items.map(({ versions }: { versions: unknown }) => versions)[0]).toMatchObject([
    { number: 2, clusters: 100, stages: ["canary"] },
  ]);
  expect(many.body.items[0]).toMatchObject({ kind: "SyncGroup", bare: 900 });
  expect(many.requests).toBe(few.requests);
  expect(many.rows).toBe(few.rows);
  expect(many.requests).toBeLessThanOrEqual(4);
});

test("the fleet includes a group that was never planned, and a group that a newer version wrote", async () => {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), cluster("c1", { env: "prod" }), webGroup("fresh"), webGroup("strange")],
  });
  const strange = await api.table.get(keys.object("payments", "SyncGroup", "strange"));
  if (strange === undefined) throw new Error("there is no such row");
  await api.table.write([{ put: { ...strange, schema: 999 } }]);
  const { body } = await api.call("GET", "/v1/fleet?namespace=payments");
  expect(body.items.map(({ metadata, status }: Listed) => `${metadata.name} ${status.state ?? "-"}`)).toEqual([
    "fresh -",
    "strange Unreadable",
  ]);
});

interface Listed {
  readonly metadata: { readonly name: string };
  readonly status: { readonly state?: string };
}
