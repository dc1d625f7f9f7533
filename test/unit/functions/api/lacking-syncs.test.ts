/** A Sync that a cluster should have and was never assigned is in the cluster's list and count, with the reason. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { apiFixture, cluster, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const templates = ["web", "api"].map((name) => ({ name, source: "app" }));

/** Rollout 12 has only the template `web`: it is on c1, and failed on c2. */
async function fixture(rolloutState: Partial<RolloutStateRow> = {}, own = templates) {
  const api = apiFixture();
  const clusters = ["c1", "c2"].map((name) => cluster(name, { env: "prod" }));
  await api.call("POST", "/v1/apply", { documents: [source("app"), ...clusters, syncGroup("shop", own)] });
  await storeRollout(api, { number: 12, states: { all: ["Succeeded", "Failed"] }, rolloutState });
  await api.table.write([{ put: syncRow("c1", "shop.web") }]);
  return api;
}

type Api = Awaited<ReturnType<typeof fixture>>;

async function listed(api: Api, name: string, query = ""): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let next = ""; ; ) {
    const { body } = await api.call("GET", `/v1/clusters/${name}/syncs?limit=1${query}${next}`);
    lines.push(
      ...body.items.map((item: Item) => {
        const ready = item.status.conditions.find(({ type }) => type === "Ready");
        const why = ready === undefined ? [] : [`${ready.reason}: ${ready.message}`];
        return [item.metadata.name, item.status.state, ...why].join(" ");
      }),
    );
    if (body.metadata.continue === undefined) return lines;
    next = `&continue=${encodeURIComponent(body.metadata.continue)}`;
  }
}

interface Item {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly state: string;
    readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
  };
}

test("a cluster on which a rollout failed lists the Sync as Failed, and a template of later rollouts is not listed yet", async () => {
  const api = await fixture();
  expect(await listed(api, "c1")).toEqual(["shop.web Ready"]);
  expect(await listed(api, "c2")).toEqual(["shop.web Failed ApplyFailed: 1 of 4 objects failed"]);
  const { syncs } = (await api.call("GET", "/v1/clusters/c2")).body.status;
  expect(syncs).toEqual({ total: 1, ready: 0, others: [{ state: "Failed", count: 1, example: "payments/shop.web" }] });
});

test("a catch-up that failed or was unreachable sets the state of its cluster's Sync", async () => {
  for (const [state, word] of [
    ["failed", "Failed"],
    ["away", "Unreachable"],
  ] as const) {
    const api = await fixture({ catchUps: { waiting: 0, changing: 0, failed: 0, [state]: 1 } });
    const row: CatchUpRow = {
      ...keys.catchUp(shop, state, "c2"),
      ...{ type: "CatchUp", schema: 1, version: 1, cluster: "c2", why: "joined" },
      ...{ since: "2026-11-20T08:00:00.000Z", reason: "RenderFailed: no YAML" },
    };
    await api.table.write([{ put: row }]);
    expect(await listed(api, "c2")).toEqual([`shop.web ${word} RenderFailed: no YAML`]);
  }
});

test("missing Syncs come once, after all pages of existing Syncs, and only when namespace and state match", async () => {
  const api = await fixture();
  const never = syncGroup("never", [{ name: "web", source: "app" }]);
  const own = sync("extra", { cluster: "c1", source: "app", path: "." });
  await api.call("POST", "/v1/apply", { documents: [never, own] });
  await api.table.write([{ put: syncRow("c1", "shop.api") }]);
  const waits = "never.web Waiting Waiting: nothing was rolled out to it yet";
  expect(await listed(api, "c1")).toEqual(["shop.api Ready", "shop.web Ready", "extra Pending", waits]);
  expect(await listed(api, "c1", "&namespace=other")).toEqual([]);
  expect(await listed(api, "c1", "&state=Waiting")).toEqual([waits]);
});

test("no Sync is missing where its template is disabled, its group is in deletion, or its cluster is not selected", async () => {
  const disabled = { overrides: [{ clusters: { names: ["c2"] }, disabled: true }] };
  const api = await fixture({}, [{ ...templates[0], ...disabled }] as typeof templates);
  expect(await listed(api, "c2")).toEqual([]);
  const other = await fixture();
  expect((await other.call("POST", "/v1/apply", { documents: [cluster("c3", { env: "test" })] })).status).toBe(200);
  expect(await listed(other, "c3")).toEqual([]);
  expect(await listed(other, "c2")).toHaveLength(1);
  expect((await other.call("DELETE", "/v1/namespaces/payments/syncgroups/shop?confirm=true")).status).toBe(200);
  expect(await listed(other, "c2")).toEqual([]);
});

test("a cluster that was never assigned anything lists the missing Sync, also when its group is suspended", async () => {
  const api = apiFixture();
  const group = syncGroup("shop", [{ name: "web", source: "app" }]);
  await api.call("POST", "/v1/apply", { documents: [source("app"), cluster("c1", { env: "prod" }), group] });
  await api.call("POST", "/v1/namespaces/payments/syncgroups/shop/suspend", {});
  expect(await listed(api, "c1")).toEqual(["shop.web Waiting Waiting: it is suspended"]);
});
