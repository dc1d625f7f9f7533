import { expect, test } from "vitest";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { tableIn, textOf } from "#test/support/html-tables.ts";

const caption = "Origins of the values, nearest first";
const parsed = syncTemplate.parse({
  name: "web",
  source: "app",
  path: "deploy/{{ cluster.labels.ring }}",
  substitute: true,
  parameters: { DOMAIN: "{{ cluster.values.domain }}", SIZE: "1" },
  overrides: [{ clusters: { names: ["c1"] }, parameters: { SIZE: "<b>3</b>" } }],
});
const { render: _render, ...template } = parsed;
const list = { items: [], metadata: {} };
const answers: Readonly<Record<string, unknown>> = {
  "/v1/namespaces/shop/syncs/shop.web": {
    kind: "Sync",
    metadata: { name: "shop.web", namespace: "shop", generation: 1 },
    spec: { cluster: "c1", source: "app", path: "." },
    status: {
      ...{ group: "shop", template: "web", state: "Ready", conditions: [] },
      desired: { rollout: 7, revision: "main@sha1:1", assignedAt: "2026-11-20T07:00:00.000Z" },
    },
  },
  "/v1/namespaces/shop/syncgroups/shop/rollouts/7": {
    kind: "Rollout",
    metadata: { name: "shop-7" },
    spec: { plan: { templates: [{ ...template, name: "other", path: "elsewhere" }, template] } },
    status: {},
  },
  "/v1/clusters/c1": {
    kind: "Cluster",
    metadata: { name: "c1", labels: { ring: "written" } },
    spec: {},
    status: {
      labels: { ring: "canary" },
      values: { domain: { value: "eu.acme.io", from: { kind: "ClusterValues", name: "eu" } } },
    },
  },
};

async function pageOf(gone: readonly string[]) {
  const ask: Ask = async <T>(path: string) => {
    if (gone.includes(path)) throw new Refusal(404, "it is gone");
    return (answers[path] ?? list) as T;
  };
  const asked = { cluster: "c1", namespace: "shop", name: "shop.web", query: {} };
  return (await syncPage(ask, asked, pageHost(new Date("2026-11-20T08:00:00.000Z")))).main.toString();
}

test("a Sync's page shows the origin of each of its values, from the rollout that it was assigned", async () => {
  const html = await pageOf([]);
  expect(tableIn(html, caption)).toEqual([
    ["path", "deploy/canary", "template from cluster.labels.ring"],
    ["parameters.DOMAIN", "eu.acme.io", "template from cluster.values.domain: clustervalues/eu"],
    ["parameters.SIZE", "<b>3</b>", "overrides[0]"],
    ["substitute", "true", "template"],
  ]);
  expect(html).not.toContain("<b>3</b>");
});

test.each(["/v1/namespaces/shop/syncgroups/shop/rollouts/7", "/v1/clusters/c1"])(
  "a Sync's page without %s says what is missing",
  async (path) => {
    const html = await pageOf([path]);
    expect(tableIn(html, caption)).toEqual([]);
    expect(textOf(html)).toContain("The origins are not known any more.");
  },
);
