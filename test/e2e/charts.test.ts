import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { below, shopChart } from "#test/support/chart-fixture.ts";
import { groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { meanwhile } from "#test/support/meanwhile.ts";
import { playControllers } from "#test/support/played-cluster.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
const pollEveryMs = 100;

/** A build has 100 s of the world's time, and a chart needs two starts of a program of 60 MB. */
const rate = 4;

/** A chart does not create its namespace. */
const files: Readonly<Record<string, string>> = {
  ...below("charts/shop", shopChart),
  "charts/shop/templates/namespace.yaml": namespaceManifest,
  "charts/shop/templates/kept.yaml": `{{ if .Values.keep }}
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
{{ end }}`,
  "env/prod.yaml": "replicas: 1\nkeep: true\ncolour: green\n",
};

function template(helm: Readonly<Record<string, unknown>>) {
  return {
    name: "shop",
    source: "app",
    path: "charts/shop",
    render: { helm: { valuesFrom: [{ path: "env/prod.yaml" }], ...helm } },
    apply: { defaultNamespace: namespace, interval: "4h" },
  };
}

/** Without controllers no workload would become ready. */
function filesFor({ fleet }: World): Readonly<Record<string, string>> {
  const { "charts/shop/templates/deployment.yaml": _workload, ...others } = files;
  return fleet.controllers === "on" ? files : others;
}

async function start(world: World, helm: Readonly<Record<string, unknown>> = {}): Promise<string> {
  await world.join(
    { name: "one", values: { colour: "red" } },
    { name: "two", values: { colour: "blue" } },
    { name: "three", values: { colour: "blue" } },
  );
  const commit = await world.createRepository("app", filesFor(world));
  const git = { url: world.git.url("app"), ref: { branch: "main" } };
  await world.apply(sourceDocument("app", { git, interval: "1h" }), webGroup(helm));
  return commit;
}

function webGroup(helm: Readonly<Record<string, unknown>>) {
  return groupDocument("web", {
    clusters: { all: true },
    templates: [template(helm)],
    rollout: { maxConcurrent: 3 },
  });
}

/** Without controllers the test itself has to complete Jobs. */
async function settled(world: World, commit: string): Promise<void> {
  const ready = world.untilInSync("web", commit).then(() => {});
  if (world.fleet.controllers === "on") return ready;
  await meanwhile(ready, async () => {
    for (const cluster of ["one", "two"]) {
      const { items = [] } = await read(world, cluster, jobs);
      const objects = (items as readonly JsonObject[]).map((item): JsonObject => ({ ...item, kind: "Job" }));
      await playControllers(objects, (path, body) => world.kubectl(cluster, { method: "PATCH", path, body }));
    }
    await sleep(pollEveryMs);
  });
}

async function read(world: World, cluster: string, path: string) {
  return (await world.kubectl(cluster, { method: "GET", path })).object;
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test("a chart in git is applied with the values of each cluster, and rendered once for each distinct input", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      const commit = await start(world, { values: { colour: "{{ cluster.values.colour }}", cache: { size: "1Gi" } } });
      await world.untilInSync("web", commit);
      for (const [cluster, colour] of [
        ["one", "red"],
        ["two", "blue"],
        ["three", "blue"],
      ] as const) {
        expect((await read(world, cluster, `${configs}/shop-a`)).data).toMatchObject({
          colour,
          "app.ini": "[shop]\nmode = fast\n",
          note: "up {{ $labels.pod }}",
        });
      }
      // Objects without a namespace are in the namespace of the release. A dependency has its own values.
      expect((await read(world, "one", `${configs}/shop-cache`)).data).toEqual({ size: "1Gi" });
      if (world.fleet.controllers === "on") {
        const deployment = await read(world, "one", `/apis/apps/v1/namespaces/${namespace}/deployments/shop-shop`);
        expect(deployment).toMatchObject({
          metadata: { labels: { "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "shop" } },
          spec: { replicas: 1, template: { spec: { containers: [{ image: "ghcr.io/acme/shop:6.9.1" }] } } },
        });
      }
      await read(world, "one", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/colours.shop.example.com");
      const pods = await world.kubectl("one", {
        method: "GET",
        path: `/api/v1/namespaces/${namespace}/pods/reachable`,
      });
      expect(pods.status).toBe(404);
      const renderings = (await world.rows()).filter(({ type }) => type === "Rendering");
      expect(renderings).toHaveLength(2);
      const sync = await world.sync("one", "web.shop");
      expect(sync?.status.desired?.leftOut).toEqual([expect.stringContaining("Pod reachable is left out")]);
      expect(renderings[0]).toMatchObject({ leftOut: [expect.stringContaining("Pod reachable is left out")] });

      // A push changes the chart. Objects that left it are deleted, except those that ask to be kept.
      const next = await world.push("app", {
        "charts/shop/templates/config.yaml": null,
        "env/prod.yaml": "replicas: 2\n",
      });
      await world.untilInSync("web", next);
      const gone = await world.kubectl("two", { method: "GET", path: `${configs}/shop-a` });
      expect(gone.status).toBe(404);
      expect((await read(world, "two", `${configs}/kept`)).metadata).toMatchObject({ name: "kept" });
    } finally {
      await world.close();
    }
  });

  test("values of another Source apply in their order, and a push to it reaches the clusters that it changes", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      const clusters = ["one", "two"];
      await world.join(...clusters.map((name) => ({ name })));
      const commit = await world.createRepository("app", filesFor(world));
      await world.createRepository("fleet", {
        "all.yaml": "colour: all\nnote: all\n",
        "clusters/one.yaml": "colour: one\n",
      });
      const git = (name: string) => ({ git: { url: world.git.url(name), ref: { branch: "main" } }, interval: "1h" });
      const valuesFrom = [
        { path: "env/prod.yaml" },
        { source: "fleet", path: "all.yaml" },
        { source: "fleet", path: "clusters/{{ cluster.name }}.yaml", optional: true },
      ];
      const group = groupDocument("web", { clusters: { all: true }, templates: [template({ valuesFrom })] });
      await world.apply(sourceDocument("app", git("app")), sourceDocument("fleet", git("fleet")), group);
      await world.untilInSync("web", commit);
      const seen = () => Promise.all(clusters.map(async (name) => (await read(world, name, `${configs}/shop-a`)).data));
      expect(await seen()).toMatchObject([
        { colour: "one", note: "all" },
        { colour: "all", note: "all" },
      ]);
      const number = (await world.rollout("web")).spec.number;

      await world.push("fleet", { "clusters/one.yaml": "colour: red\n" });
      await world.waitFor("the rollout", async () => {
        const { spec, status } = await world.rollout("web");
        return spec.number > number && status.phase === "Complete";
      });
      expect(await seen()).toMatchObject([
        { colour: "red", note: "all" },
        { colour: "all", note: "all" },
      ]);
      const states = (await world.targets("web")).map(({ cluster, state }) => [cluster, state]);
      expect(Object.fromEntries(states)).toEqual({ one: "Succeeded", two: "Unchanged" });
      // The Source that has only values counts as in use.
      const path = `/v1/namespaces/${namespace}/sources/fleet?confirm=true`;
      await expect(world.session.call("DELETE", path)).rejects.toThrow(/Source shop\/fleet is used by SyncGroup\/web/);
    } finally {
      await world.close();
    }
  });

  test("hooks run before and after an install and an upgrade, in one cluster at a time", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      await world.join({ name: "one" }, { name: "two" });
      const job = (name: string, hook: string, more = "") =>
        `apiVersion: batch/v1
kind: Job
metadata: {name: ${name}, annotations: {helm.sh/hook: "${hook}"${more}}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: m, image: "m:1"}]}}}
`;
      const commit = await world.createRepository("app", {
        ...filesFor(world),
        "charts/shop/templates/migrate.yaml": job("migrate", "pre-install,pre-upgrade"),
        "charts/shop/templates/seed.yaml": job("seed", "post-install"),
        "charts/shop/templates/warm.yaml": job("warm", "post-upgrade", ", helm.sh/hook-delete-policy: hook-succeeded"),
        "charts/shop/templates/colour.yaml":
          "apiVersion: shop.example.com/v1\nkind: Colour\nmetadata: {name: green, annotations: {argocd.argoproj.io/sync-wave: '-1'}}\n",
      });
      const git = { url: world.git.url("app"), ref: { branch: "main" } };
      const group = groupDocument("web", {
        clusters: { all: true },
        templates: [template({})],
        rollout: { maxConcurrent: 1 },
      });
      await world.apply(sourceDocument("app", { git, interval: "1h" }), group);
      await settled(world, commit);
      const uidOf = async (cluster: string, name: string) => {
        const { status, object } = await world.kubectl(cluster, { method: "GET", path: `${jobs}/${name}` });
        return status === 404 ? undefined : (object.metadata as { uid: string }).uid;
      };
      const of = async (name: string) => [await uidOf("one", name), await uidOf("two", name)];
      const [migrated, seeded] = [await of("migrate"), await of("seed")];
      expect([...migrated, ...seeded].filter((uid) => uid === undefined)).toEqual([]);
      expect(await of("warm")).toEqual([undefined, undefined]);
      await read(world, "one", `/apis/shop.example.com/v1/namespaces/${namespace}/colours/green`);

      const next = await world.push("app", { "env/prod.yaml": "replicas: 1\nkeep: true\ncolour: red\n" });
      await settled(world, next);
      const again = await of("migrate");
      for (const [index, uid] of again.entries()) {
        expect(uid).toBeDefined();
        expect(uid).not.toBe(migrated[index]);
      }
      expect(await of("seed")).toEqual(seeded);
      expect(await of("warm")).toEqual([undefined, undefined]);
      for (const cluster of ["one", "two"]) {
        const { observed, desired } = (await world.sync(cluster, "web.shop"))?.status ?? {};
        expect(observed).toMatchObject({ phase: "Ready", objects: { foreign: 0 } });
        expect(desired?.leftOut).toEqual([expect.stringContaining("Pod reachable is left out")]);
      }
    } finally {
      await world.close();
    }
  });

  test("a chart that cannot be rendered reaches no cluster, and status and commands show the reason", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      const commit = await start(world);
      await world.untilInSync("web", commit);
      await world.push("app", {
        "charts/shop/templates/secret.yaml":
          'apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\nstringData: {pw: "{{ randAlphaNum 20 }}"}\n',
      });
      const targets = await world.waitFor("the failure", async () => {
        const found = (await world.targets("web")).filter(({ state }) => state === "Failed");
        return found.length > 0 && found;
      });
      expect(targets[0]?.reason).toMatch(
        /charts\/shop\/templates\/secret\.yaml \(as rendered\), Secret pw, data\.pw: changes each time the chart is rendered \(NonDeterministicRender\)/,
      );
      for (const cluster of ["one", "two", "three"]) {
        const path = `/api/v1/namespaces/${namespace}/secrets/pw`;
        expect((await world.kubectl(cluster, { method: "GET", path })).status).toBe(404);
      }
    } finally {
      await world.close();
    }
  });

  test("a folder with a Chart.yaml is rendered as a chart without any setting", async () => {
    const world = await startWorld({ target: fleet, rate });
    try {
      await world.join({ name: "one" });
      const commit = await world.createRepository("app", filesFor(world));
      const git = { url: world.git.url("app"), ref: { branch: "main" } };
      const { render: _render, ...detected } = template({});
      await world.apply(
        sourceDocument("app", { git, interval: "1h" }),
        groupDocument("web", { clusters: { all: true }, templates: [detected] }),
      );
      await world.untilInSync("web", commit);
      expect((await read(world, "one", `${configs}/shop-a`)).data).toMatchObject({ colour: "blue" });
    } finally {
      await world.close();
    }
  });
});
