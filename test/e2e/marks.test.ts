/** A chart inside a kustomization, and objects with marks that prevent writes, from a push to the objects in a cluster. */
import { describe, expect, test } from "vitest";
import { below, shopChart } from "#test/support/chart-fixture.ts";
import { groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { handUserAgent } from "#test/support/kube-call.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const { "templates/deployment.yaml": _workload, ...chart } = shopChart;

/** A build has 100 s of the world's time, and a chart needs two starts of a program of 60 MB. */
const rate = 4;

/** The names of objects and their marks. */
const marks = {
  plain: "",
  made: "kustomize.toolkit.fluxcd.io/ssa: IfNotPresent",
  ignored: "kustomize.toolkit.fluxcd.io/ssa: Ignore",
  left: "kustomize.toolkit.fluxcd.io/reconcile: disabled",
  shared: "kustomize.toolkit.fluxcd.io/ssa: Merge",
} as const;
type Name = keyof typeof marks;
const names = Object.keys(marks) as readonly Name[];

function marked(version: string): string {
  const objects = Object.entries(marks).map(
    ([name, mark]) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: ${namespace}, annotations: {${mark}}}\ndata: {git: "${version}"}\n`,
  );
  return objects.join("---\n");
}

const kustomization = (size: string) => `resources: [namespace.yaml, marked.yaml]
helmCharts:
  - {name: shop, releaseName: shop, namespace: ${namespace}, includeCRDs: true, valuesInline: {cache: {size: ${size}}}}
`;

async function dataOf(world: World, name: string): Promise<unknown> {
  const { status, object } = await world.kubectl("one", { method: "GET", path: `${configs}/${name}` });
  return status === 404 ? "not there" : object.data;
}

async function all(world: World): Promise<unknown> {
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await dataOf(world, name)] as const)));
}

/** The objects with marks that Starling wrote to. */
function written(world: World): readonly string[] {
  const paths = world.fleet
    .requests()
    .filter(({ method, userAgent, dryRun }) => method !== "GET" && userAgent !== handUserAgent && !dryRun)
    .map(({ path }) => path);
  return names.filter((name) => paths.includes(`${configs}/${name}`));
}

/** Writes as `kubectl edit` and `kubectl create` do. */
const byKubectl = "?fieldManager=kubectl-edit";

async function addByHand(world: World, name: Name): Promise<void> {
  const body = { data: { hand: "1" } };
  await world.kubectl("one", { method: "PATCH", path: `${configs}/${name}${byKubectl}`, body });
}

async function makeByHand(world: World, name: Name): Promise<void> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { hand: "1" } };
  await world.kubectl("one", { method: "POST", path: `${configs}${byKubectl}`, body });
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test("a chart in a kustomization is applied, and marks decide whether Starling overwrites the changes of others", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      await world.join({ name: "one" });
      const commit = await world.createRepository("app", {
        ...below("deploy/charts/shop", chart),
        "deploy/kustomization.yaml": kustomization("1Gi"),
        "deploy/namespace.yaml": namespaceManifest,
        "deploy/marked.yaml": marked("1"),
      });
      const git = { url: world.git.url("app"), ref: { branch: "main" } };
      const templates = [
        { name: "app", source: "app", path: "deploy", apply: { interval: "4h", defaultNamespace: namespace } },
      ];
      await world.apply(
        sourceDocument("app", { git, interval: "1h" }),
        groupDocument("web", { clusters: { all: true }, templates }),
      );
      await world.untilInSync("web", commit);
      expect(await dataOf(world, "shop-cache")).toEqual({ size: "1Gi" });
      expect(await dataOf(world, "shop-a")).toMatchObject({ colour: "blue", "app.ini": "[shop]\nmode = fast\n" });
      const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/colours.shop.example.com";
      expect((await world.kubectl("one", { method: "GET", path: definition })).status).toBe(200);
      const git1 = { git: "1" };
      expect(await all(world)).toEqual({
        plain: git1,
        made: git1,
        shared: git1,
        ignored: "not there",
        left: "not there",
      });
      expect(written(world)).toEqual(["plain", "made", "shared"]);

      for (const name of ["plain", "made", "shared"] as const) await addByHand(world, name);
      for (const name of ["ignored", "left"] as const) await makeByHand(world, name);
      world.fleet.clearRequests();
      const next = await world.push("app", {
        "deploy/kustomization.yaml": kustomization("2Gi"),
        "deploy/marked.yaml": marked("2"),
      });
      await world.untilInSync("web", next);
      expect(await dataOf(world, "shop-cache")).toEqual({ size: "2Gi" });
      expect(await all(world)).toEqual({
        plain: { git: "2" },
        made: { git: "1", hand: "1" },
        shared: { git: "2", hand: "1" },
        ignored: { hand: "1" },
        left: { hand: "1" },
      });
      expect(written(world)).toEqual(["plain", "shared"]);

      // Objects that left git are deleted, except those that Starling never made.
      world.fleet.clearRequests();
      const last = await world.push("app", {
        "deploy/kustomization.yaml": kustomization("2Gi").replace(", marked.yaml", ""),
        "deploy/marked.yaml": null,
      });
      await world.untilInSync("web", last);
      const hand = { hand: "1" };
      const gone = "not there";
      expect(await all(world)).toEqual({ plain: gone, made: gone, shared: gone, ignored: hand, left: hand });
      expect(written(world)).toEqual(["plain", "made", "shared"]);
    } finally {
      await world.close();
    }
  });
});
