/** Reads with kubectl the fleet that `npm run demo -- --example platform` leaves. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { parseJson } from "#shared/base/json.ts";
import { clusterReader, type Kubectl, membersOf } from "#test/support/cluster-reader.ts";
import { startDemo } from "#test/support/demo-process.ts";
import type { StartedProcess } from "#test/support/started-process.ts";

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), "starling-example-test-"));
const tmp = join(home, "tmp");
const keep = join(home, "keep");
const kubeconfig = join(keep, "kubeconfig");
let demo: StartedProcess | undefined;
let kubectl = "";
let members = new Map<string, readonly string[]>();

const of = (cluster: string): Kubectl => clusterReader({ kubectl, kubeconfig, context: cluster });

beforeAll(async () => {
  kubectl = await locateKubectl("");
  mkdirSync(tmp);
  demo = startDemo(["--example", "platform", "--keep", keep], { tmp });
  await demo.until(/^in sync: .* of shop\/shop .*\n/m, { timeoutMs: 280_000 });
  const { stdout } = await run(kubectl, ["--kubeconfig", kubeconfig, "config", "get-contexts", "-o", "name"]);
  const names = stdout.trim().split("\n").sort();
  members = new Map();
  for (const name of names) members.set(name, (await membersOf(of(name))).toSorted());
}, 300_000);

afterAll(async () => {
  demo?.child.kill("SIGTERM");
  await demo?.ended();
  rmSync(home, { recursive: true, force: true });
});

/** Objects by `KIND NAMESPACE/NAME`. The digest at the end of a generated name is replaced. */
function objectsOf(cluster: string): readonly string[] {
  const ids = (members.get(cluster) ?? []).map((id) =>
    id.replace(/^\S+ /, "").replace(/(settings)-[a-z0-9]{10}$/, "$1-…"),
  );
  return ids.toSorted();
}

function beyond(cluster: string, other: string): readonly string[] {
  const others = new Set(objectsOf(other));
  return objectsOf(cluster).filter((id) => !others.has(id));
}

async function read(cluster: string, ...args: readonly string[]): Promise<unknown> {
  return parseJson(await of(cluster)("get", ...args, "-o", "json"));
}

async function dataOf(cluster: string, namespace: string): Promise<unknown> {
  const { items } = (await read(cluster, "configmaps", "-n", namespace)) as {
    readonly items: readonly { readonly metadata: { readonly name: string }; readonly data: unknown }[];
  };
  return items.find(({ metadata }) => metadata.name.includes("settings"))?.data;
}

test("the demo says that all objects are in sync, and which cluster has which", () => {
  const out = demo?.out() ?? "";
  expect(out).toMatch(/^1\. SyncGroup platform\/addons: guardrails, ingress, monitoring$/m);
  expect(out).toMatch(/^2\. SyncGroup shop\/shop: web$/m);
  expect(out).toMatch(/\nin sync: 6\/6 clusters of platform\/addons at main@sha1:[0-9a-f]{40}\n/);
  expect(out).toMatch(/\nin sync: 5\/5 clusters of shop\/shop at main@sha1:[0-9a-f]{40}\n$/);
  expect(out).not.toContain("not in sync");
  for (const [cluster, { length }] of members)
    expect(out).toMatch(new RegExp(`^ {3}${cluster} +${length} objects: `, "m"));
});

test("every cluster has the objects of its region and tier", () => {
  expect(Object.fromEntries([...members].map(([cluster, { length }]) => [cluster, length]))).toEqual({
    "eu-gold-1": 27,
    "eu-standard-1": 23,
    "eu-standard-2": 23,
    "us-edge-1": 15,
    "us-gold-1": 26,
    "us-standard-1": 22,
  });
  expect(objectsOf("us-edge-1")).toEqual([
    "AlertRoute monitoring/platform-oncall",
    "ClusterRoleBinding /on-call-viewers",
    "ConfigMap ingress/ingress-settings",
    "ConfigMap monitoring/monitoring-settings",
    "CustomResourceDefinition /alertroutes.monitoring.acme.example",
    "Deployment ingress/ingress",
    "IngressClass /acme",
    "Job monitoring/monitoring-migrate",
    "Namespace /ingress",
    "Namespace /monitoring",
    "PriorityClass /business",
    "PriorityClass /platform",
    "Service ingress/ingress",
    "Service monitoring/monitoring",
    "StatefulSet monitoring/monitoring",
  ]);
  // The application is not for branch offices.
  expect(beyond("us-standard-1", "us-edge-1")).toEqual([
    "ConfigMap shop/settings-…",
    "Deployment shop/mailer",
    "Deployment shop/web",
    "Ingress shop/web",
    "Job shop/migrate",
    "Namespace /shop",
    "Service shop/web",
  ]);
  expect(beyond("us-gold-1", "us-standard-1")).toEqual([
    "Deployment shop/cache",
    "PodDisruptionBudget ingress/ingress",
    "PodDisruptionBudget shop/web",
    "Service shop/cache",
  ]);
  expect(beyond("eu-gold-1", "us-gold-1")).toEqual(["AlertRoute monitoring/platform-eu"]);
  expect(beyond("eu-standard-1", "us-standard-1")).toEqual(["AlertRoute monitoring/platform-eu"]);
  expect(objectsOf("eu-standard-2")).toEqual(objectsOf("eu-standard-1"));
  for (const [less, more] of [
    ["us-edge-1", "us-standard-1"],
    ["us-standard-1", "us-gold-1"],
    ["us-gold-1", "eu-gold-1"],
  ] as const)
    expect(beyond(less, more)).toEqual([]);
});

describe("differences between clusters", () => {
  test("a chart gets values of the fleet, the region, the tier and the cluster", async () => {
    const settings = async (cluster: string) => [await dataOf(cluster, "ingress"), await dataOf(cluster, "monitoring")];
    const eu = { "log-format": "json", "trusted-proxies": "10.16.0.0/12" };
    const us = { "log-format": "json", "trusted-proxies": "10.32.0.0/12,10.48.0.0/12" };
    expect(await settings("eu-gold-1")).toEqual([
      { ...eu, host: "eu.acme.example" },
      { retention: "30d", "scrape-interval": "15s" },
    ]);
    expect(await settings("eu-standard-2")).toEqual([
      { ...eu, host: "pilot.acme.example" },
      { retention: "30d", "scrape-interval": "60s" },
    ]);
    expect(await settings("us-standard-1")).toEqual([
      { ...us, host: "acme.example" },
      { retention: "14d", "scrape-interval": "60s" },
    ]);
  });

  test("a kustomization gets parameters, overlays and overrides by cluster", async () => {
    const common = (cluster: string) => dataOf(cluster, "shop");
    expect(await common("eu-gold-1")).toEqual({
      HOST: "shop.eu.acme.example",
      CURRENCY: "EUR",
      CART_DAYS: "7",
      CACHE: "cache:6379",
    });
    expect(await common("us-gold-1")).toMatchObject({ HOST: "shop.acme.example", CURRENCY: "USD", CART_DAYS: "30" });
    expect(await common("eu-standard-2")).toEqual({ HOST: "shop.pilot.acme.example", CURRENCY: "EUR", CART_DAYS: "7" });
    const web = async (cluster: string) => {
      const { spec } = (await read(cluster, "deployment", "web", "-n", "shop")) as {
        readonly spec: {
          readonly replicas: number;
          readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
        };
      };
      return `${spec.replicas} x ${spec.template.spec.containers[0]?.image}`;
    };
    expect(await web("eu-gold-1")).toBe("3 x registry.example/shop/web:2.9.0-rc.1");
    expect(await web("us-standard-1")).toBe("1 x registry.example/shop/web:2.9.0-rc.1");
    expect(await web("us-gold-1")).toBe("3 x registry.example/shop/web:2.8.0");
    expect(await web("eu-standard-1")).toBe("1 x registry.example/shop/web:2.8.0");
  });

  test("patches apply to one tier, and each region has its own on-call team", async () => {
    const wakes = async (cluster: string) =>
      (await of(cluster)("get", "alertroutes", "-n", "monitoring", "-o", "jsonpath={.items[*].spec.wake}")).trim();
    expect([await wakes("us-edge-1"), await wakes("us-gold-1"), await wakes("eu-gold-1")]).toEqual([
      "false",
      "true",
      "true true",
    ]);
    const viewers = (cluster: string) =>
      of(cluster)("get", "clusterrolebinding", "on-call-viewers", "-o", "jsonpath={.subjects[0].name}");
    expect([await viewers("eu-gold-1"), await viewers("us-edge-1")]).toEqual(["on-call-eu", "on-call-us"]);
  });

  test("hooks have run, one of which is kept and one of which is deleted after its success", async () => {
    for (const cluster of members.keys()) {
      const jobs = await of(cluster)(
        "get",
        "jobs",
        "-A",
        "-o",
        "jsonpath={.items[*].metadata.name} {.items[*].status.succeeded}",
      );
      expect(jobs, cluster).toBe(cluster === "us-edge-1" ? "monitoring-migrate 1" : "monitoring-migrate migrate 1 1");
    }
  });
});

test("the demo stops every process that it started, and the error about an unknown example lists the known ones", async () => {
  demo?.child.kill("SIGTERM");
  expect(await demo?.ended()).toBe(0);
  const other = startDemo(["--example", "nope"], { tmp });
  expect(await other.ended()).toBe(2);
  expect(other.err()).toContain("--example is nope; expected one of gates, platform, registry");
  expect(readdirSync(tmp)).toEqual([]);
});
