// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is a variable of Starling's
/** `render --offline`: what a cluster is called, labelled and given comes from documents alone. */
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

function render(documents: readonly string[]) {
  writeFileSync(join(folder, "fleet.yaml"), documents.join("---\n"));
  const asked = ["render", "sync/web", "-n", "shop", "--offline", "-f", "fleet.yaml", "--source", "app=app"];
  return runWithoutTerminal(asked, { folder, patienceMs: 60_000 });
}

test("a namespace from a label, and a parameter from a value of the cluster", async () => {
  const { code, err, out } = await render([source, cluster, sync]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain("name: shop-gold");
  expect(out).toContain("namespace: shop-gold");
  expect(out).toContain("url: https://eu.example.com");
});

test("a cluster that no document has is to be given, and no installation is asked about", async () => {
  const { code, err } = await render([source, sync]);
  expect(code).toBe(1);
  expect(err).toContain("Sync shop/web selects no cluster that is in a document");
  expect(err).toContain("next: a document of kind Cluster in a file of -f");
  expect(err).not.toContain("starling describe");
});
