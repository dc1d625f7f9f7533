// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is a variable of Starling's
/** `render --offline` takes the names, labels and values of a cluster only from documents. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-offline-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const source = `apiVersion: starling.dev/v1alpha1
kind: Source
metadata: { name: app, namespace: shop }
spec: { git: { url: "https://git.example/app.git" } }
`;
const cluster = `apiVersion: starling.dev/v1alpha1
kind: Cluster
metadata: { name: c1, labels: { tier: gold } }
spec:
  eks: { arn: "arn:aws:eks:eu-west-1:111111111111:cluster/c1" }
  access: { role: { name: apply } }
  values: { domain: eu.example.com }
`;
const sync = `apiVersion: starling.dev/v1alpha1
kind: Sync
metadata: { name: web, namespace: shop }
spec:
  cluster: c1
  source: app
  path: deploy
  targetNamespace: "shop-{{ cluster.labels.tier }}"
  createNamespace: { labels: { team: shop } }
  parameters: { DOMAIN: "{{ cluster.values.domain }}" }
  substitute: true
`;
mkdirSync(join(folder, "app/deploy"), { recursive: true });
writeFileSync(
  join(folder, "app/deploy/a.yaml"),
  'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { url: "https://${DOMAIN}" }\n',
);

function render(documents: readonly string[], target = "sync/web", more: readonly string[] = []) {
  writeFileSync(join(folder, "fleet.yaml"), documents.join("---\n"));
  const asked = ["render", target, "-n", "shop", "--offline", "-f", "fleet.yaml", "--source", "app=app", ...more];
  return runWithoutTerminal(asked, { folder, patienceMs: 60_000 });
}

test("render --offline substitutes labels and values of the cluster", async () => {
  const { code, err, out } = await render([source, cluster, sync]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain("name: shop-gold");
  expect(out).toContain("namespace: shop-gold");
  expect(out).toContain("url: https://eu.example.com");
});

test("a cluster without a document has to be given, and no installation is mentioned", async () => {
  const { code, err } = await render([source, sync]);
  expect(code).toBe(1);
  expect(err).toContain("Sync shop/web selects no cluster that is in a document");
  expect(err).toContain("next: a document of kind Cluster in a file of -f");
  expect(err).not.toContain("starling describe");
});

test("a folder without the files of an included Source is refused with their place", async () => {
  const includes = source.replace("spec: { ", "spec: { include: [{ source: charts, toPath: vendor }], ");
  const { code, err } = await render([includes, cluster, sync]);
  expect(code).toBe(2);
  expect(err).toContain("there are no files in app/vendor, a path of the Source");
});

const other = cluster
  .replaceAll("c1", "c2")
  .replace("tier: gold", "tier: std")
  .replace("  values: { domain: eu.example.com }\n", "");
const values = `apiVersion: starling.dev/v1alpha1
kind: ClusterValues
metadata: { name: all }
spec: { clusters: { all: true }, values: { domain: all.example.com } }
`;
const group = `apiVersion: starling.dev/v1alpha1
kind: SyncGroup
metadata: { name: fleet, namespace: shop }
spec:
  clusters: { all: true }
  templates:
    - name: web
      source: app
      path: deploy
      parameters: { DOMAIN: "{{ cluster.values.domain }}" }
      substitute: true
      overrides:
        - clusters: { selector: { matchLabels: { tier: gold } } }
          patches: [{ patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {tier: gold}}" }]
`;
const fleet = [source, cluster, other, values, group];

test("render --offline of a SyncGroup uses the values and overrides of each cluster, and the values of the fleet", async () => {
  const { code, err, out } = await render(fleet, "fleet");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const [, first, second, ...more] = out.split(/^# (?=fleet\.web on )/m);
  expect(more).toEqual([]);
  expect(first).toMatch(/^fleet\.web on cluster c1, folder app\n/);
  expect(first).toContain("tier: gold\n  url: https://eu.example.com\n");
  expect(second).toMatch(/^fleet\.web on cluster c2, folder app\n/);
  expect(second).toContain("url: https://all.example.com\n");
  expect(second).not.toContain("tier");
});

test("render --offline can show a SyncGroup on one cluster, or one template of it", async () => {
  for (const [target, more] of [
    ["fleet", ["--cluster", "c2"]],
    ["sync/fleet.web", ["--cluster", "c2"]],
  ] as const) {
    const { code, err, out } = await render(fleet, target, more);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.match(/^# fleet\.web on .*$/gm)).toEqual(["# fleet.web on cluster c2, folder app"]);
  }
  const none = await render(fleet, "fleet", ["--cluster", "c3"]);
  expect(none.code).toBe(1);
  expect(none.err).toContain("cluster c3 is not in a document: SyncGroup shop/fleet has no rendering for it");
});

test("the error for a missing document lists the existing ones, and mentions no installation", async () => {
  const { code, err } = await render(fleet, "fleet.web");
  expect(code).toBe(2);
  expect(err).toBe(
    "error: SyncGroup shop/fleet.web does not exist in the documents of -f\n  next: they have sync/fleet.web, syncgroup/fleet\n",
  );
});
