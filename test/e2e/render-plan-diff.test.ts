// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Starling substitutes them
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument, yaml } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "starling-seeing-"));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const secretValue = "aHVudGVyMg==";
const files = {
  "deploy/kustomization.yaml": "resources: [namespace.yaml, settings.yaml, extra.yaml, password.yaml]\n",
  "deploy/namespace.yaml": namespaceManifest,
  "deploy/settings.yaml": configMap("settings", { url: "https://${TIER}.example", size: "1" }),
  "deploy/extra.yaml": configMap("extra", { big: "9007199254740993" }),
  "deploy/password.yaml": yaml({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "password", namespace },
    data: { password: secretValue },
  }),
};

const group = groupDocument("web", {
  clusters: { all: true },
  templates: [
    {
      name: "app",
      source: "app",
      path: "deploy",
      parameters: { TIER: "{{ cluster.labels.tier }}" },
      substitute: true,
      apply: { interval: "4h" },
      overrides: [{ clusters: { names: ["gold-1"] }, namePrefix: "x-" }],
    },
  ],
  rollout: {
    maxConcurrent: 4,
    stages: [{ name: "gold", clusters: { selector: { matchLabels: { tier: "gold" } } } }, { name: "rest" }],
  },
});

async function startFleet(world: World): Promise<string> {
  await world.join(
    { name: "gold-1", labels: { tier: "gold" } },
    { name: "std-1", labels: { tier: "std" } },
    { name: "std-2", labels: { tier: "std" } },
  );
  const commit = await world.createRepository("app", files);
  await world.apply(
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } }, interval: "1h" }),
    group,
  );
  await world.untilInSync("web", commit);
  return commit;
}

interface Shown {
  readonly items: readonly {
    readonly digest: string;
    readonly clusters: readonly string[];
    readonly objects: readonly ManifestObject[];
  }[];
}

async function json<T>(cli: WorldCli, line: string, code: number): Promise<T> {
  const ran = await cli.run(`${line} -o json`);
  expect(ran.err).toBe("");
  expect(ran.code).toBe(code);
  return parseJson(ran.out) as T;
}

interface Planned {
  readonly items: readonly {
    readonly hash: string;
    readonly differences: readonly {
      readonly clusters: readonly string[];
      readonly changes: readonly { readonly objects: readonly { readonly id: ObjectId }[] }[];
    }[];
  }[];
}

interface Differing {
  readonly items: readonly {
    readonly clusters: readonly string[];
    readonly notes: readonly string[];
    readonly differences: readonly { readonly id: ObjectId; readonly fields: readonly { readonly field: string }[] }[];
  }[];
}

/** The flag for a kubeconfig with a context for each cluster. */
function kubeconfigOf(world: World): string {
  const all = clusters.map((name) => ({ ...world.fleet.connection(name), name }));
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: all.map(({ name, server, caData }) => ({
      name,
      cluster: { server, "certificate-authority-data": caData },
    })),
    users: all.map(({ name, token }) => ({ name, user: { token } })),
    contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  };
  return `--kubeconfig ${folderOf({ config: JSON.stringify(config) })}/config`;
}

/** The writes to the table, queues and clusters, none of which these commands may make. */
function writesSince(world: World) {
  const [calls, requests] = [world.calls().length, world.fleet.requests().length];
  return () => ({
    clusters: world.fleet
      .requests()
      .slice(requests)
      .filter(({ method, dryRun }) => method !== "GET" && !dryRun),
    calls: world
      .calls()
      .slice(calls)
      .filter(({ function: by, action }) => by === "api" && !/:(Get|BatchGet|Query|List)/.test(action)),
  });
}

const plurals: Readonly<Record<string, string>> = { ConfigMap: "configmaps", Secret: "secrets" };

/** The object in the cluster. */
async function applied(world: World, cluster: string, { kind, metadata }: ManifestObject) {
  const plural = plurals[kind];
  const path =
    plural === undefined
      ? `/api/v1/namespaces/${metadata.name}`
      : `/api/v1/namespaces/${namespace}/${plural}/${metadata.name}`;
  return (await world.kubectl(cluster, { method: "GET", path })).object;
}

const clusters = ["gold-1", "std-1", "std-2"];

/** The data of every ConfigMap in the namespace of each cluster. */
async function versions(world: World): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const cluster of clusters) {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { object } = await world.kubectl(cluster, { method: "GET", path });
    const { items } = object as { readonly items: readonly { readonly metadata: Readonly<Record<string, string>> }[] };
    for (const { metadata } of items)
      found.set(`${cluster} ConfigMap ${metadata.name}`, metadata.resourceVersion ?? "");
  }
  return found;
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test("render prints the bytes that the clusters have, from the stored revision and from a folder, and writes nothing", async () => {
    const world = await startWorld({ target: fleet });
    const cli = openWorldCli(world);
    try {
      await startFleet(world);
      const written = writesSince(world);
      const stored = await json<Shown>(cli, "render web --show-secrets", 0);
      expect(stored.items.map(({ clusters }) => clusters)).toEqual([["gold-1"], ["std-1", "std-2"]]);
      const folder = folderOf(files);
      const made = await json<Shown>(cli, `render web --show-secrets --source app=${folder}`, 0);
      expect(made.items.map(({ digest }) => digest)).toEqual(stored.items.map(({ digest }) => digest));
      expect(made.items.map(({ objects }) => objects)).toEqual(stored.items.map(({ objects }) => objects));
      const fetched = await json<Shown>(cli, "render web --show-secrets --revision main", 0);
      expect(fetched.items.map(({ digest }) => digest)).toEqual(stored.items.map(({ digest }) => digest));
      for (const { digest, clusters, objects } of stored.items) {
        for (const cluster of clusters) {
          expect((await world.sync(cluster, "web.app"))?.status.desired?.renderDigest).toBe(digest);
          for (const object of objects) expect(await applied(world, cluster, object)).toMatchObject(object);
        }
      }
      const shown = await cli.run("render sync/web.app --cluster std-1 --show-origin");
      expect(shown.code).toBe(0);
      expect(shown.out).not.toContain(secretValue);
      expect(shown.out).toContain("password: '***'");
      expect(shown.out).toContain('parameters.TIER = "std"   (template <- cluster.labels.tier)');
      const described = await cli.run("describe sync/web.app --cluster std-1");
      expect(described.out).toContain("Inputs of app on std-1:\n");
      expect(written()).toEqual({ clusters: [], calls: [] });
    } finally {
      cli.close();
      await world.close();
    }
  });

  test("a plan of a folder predicts the clusters and objects that a push of it changes, and writes nothing", async () => {
    const world = await startWorld({ target: fleet });
    const cli = openWorldCli(world);
    try {
      await startFleet(world);
      expect((await cli.run("plan")).code).toBe(0);
      const changes = {
        "deploy/settings.yaml": configMap("settings", { url: "https://${TIER:=std}.example", size: "1" }),
        "deploy/extra.yaml": configMap("extra", { big: "2" }),
        "deploy/kustomization.yaml":
          "resources: [namespace.yaml, settings.yaml, extra.yaml, password.yaml, new.yaml]\n",
        "deploy/new.yaml": configMap("new", { a: "b" }),
      };
      const folder = folderOf({ ...files, ...changes });
      const written = writesSince(world);
      const planned = await json<Planned>(cli, `plan web --source app=${folder}`, 1);
      const again = await json<Planned>(cli, `plan web --source app=${folder}`, 1);
      expect(again.items[0]?.hash).toBe(planned.items[0]?.hash);
      const text = await cli.run(`plan web --source app=${folder}`);
      expect(text.out).toContain("3 clusters selected: 3 would change, 0 unchanged");
      expect(text.out).toContain(`~ ConfigMap ${namespace}/extra`);
      expect(text.out).toContain('data.big  "9007199254740993" -> "2"');
      expect(written()).toEqual({ clusters: [], calls: [] });

      const before = await versions(world);
      const commit = await world.push("app", changes);
      await world.untilInSync("web", commit);
      const after = await versions(world);
      const changed = [...after]
        .filter(([object, version]) => before.get(object) !== version)
        .map(([object]) => object);
      const foreran = planned.items.flatMap(({ differences }) =>
        differences.flatMap(({ clusters, changes: all }) =>
          all.flatMap(({ objects }) =>
            clusters.flatMap((cluster) => objects.map(({ id }) => `${cluster} ${id.kind} ${id.name}`)),
          ),
        ),
      );
      expect(changed.sort()).toEqual([...new Set(foreran)].sort());
      expect((await cli.run("plan web")).code).toBe(0);
    } finally {
      cli.close();
      await world.close();
    }
  });

  test("a diff of a cluster shows only the changes by hand, and writes nothing", async () => {
    const world = await startWorld({ target: fleet });
    const cli = openWorldCli(world);
    try {
      await startFleet(world);
      const me = kubeconfigOf(world);
      const live = (context: string) => cli.run(`diff sync/web.app --cluster std-1 ${me} --kube-context ${context}`);
      const clean = await live("std-1");
      expect(clean.out).toContain("# web.app on cluster std-1");
      expect({ ...clean, out: clean.out.split("\n").filter((line) => !line.startsWith("#")) }).toEqual({
        out: [""],
        err: "",
        code: 0,
      });
      const path = `/api/v1/namespaces/${namespace}`;
      await world.kubectl("std-1", {
        method: "PATCH",
        path: `${path}/configmaps/settings`,
        body: { data: { size: "2", added: "by somebody" } },
      });
      await world.kubectl("std-1", {
        method: "PATCH",
        path: `${path}/secrets/password`,
        body: { data: { password: "b3RoZXI=" } },
      });
      const written = writesSince(world);
      const found = await live("std-1");
      expect(found.code).toBe(1);
      expect(found.out).toContain("-  size: '2'\n+  size: '1'\n");
      expect(found.out.match(/^[-+] .*$/gm)).toEqual([
        "-  size: '2'",
        "+  size: '1'",
        "-  password: '*** (before)'",
        "+  password: '*** (after)'",
      ]);
      expect(found.out).toContain(`+++ git/Secret ${namespace}/password`);
      expect(found.out).not.toMatch(/b3RoZXI=|aHVudGVyMg==/);
      const ran = await json<Differing>(cli, `diff sync/web.app --cluster std-1 ${me} --kube-context std-1`, 1);
      expect(ran.items[0]?.differences.map(({ id, fields }) => [id.name, fields[0]?.field])).toEqual([
        ["settings", "data.size"],
        ["password", "data.password"],
      ]);
      expect(written()).toEqual({ clusters: [], calls: [] });

      const other = await live("std-2");
      expect(other.code).toBe(3);
      expect(other.err).toContain("the cluster that answers is not std-1");
      expect((await cli.run("diff sync/web.app --cluster std-1")).err).toContain("--kube-context NAME");
      const several = await cli.run("diff web");
      expect(several.code).toBe(2);
      expect(several.err).toMatch(/next: starling diff syncgroup\/web --cluster (std|gold)-\d -n \S+\n/);
    } finally {
      cli.close();
      await world.close();
    }
  });

  test("a diff of a folder with the assignments shows equal clusters once, and sends no request to a cluster", async () => {
    const world = await startWorld({ target: fleet });
    const cli = openWorldCli(world);
    try {
      await startFleet(world);
      const folder = folderOf({ ...files, "deploy/extra.yaml": configMap("extra", { big: "2" }) });
      const requests = world.fleet.requests().length;
      const found = await cli.run(`diff web --source app=${folder}`);
      expect(found.code).toBe(1);
      expect(found.out.match(/^# web.app on .*$/gm)).toHaveLength(2);
      expect(found.out.match(/^- {2}big: '9007199254740993'\n\+ {2}big: '2'$/gm)).toHaveLength(2);
      const one = await cli.run(`diff web --source app=${folder} --cluster gold-1`);
      expect(one.out.match(/^diff .*$/gm)).toEqual([`diff ConfigMap ${namespace}/x-extra`]);
      expect((await cli.run(`diff web --source app=${folderOf(files)}`)).code).toBe(0);
      const own = groupDocument("web", {
        clusters: { names: ["std-1"] },
        templates: [{ name: "app", source: "app", path: "deploy", parameters: { TIER: "std" }, substitute: true }],
      });
      const document = folderOf({ "group.json": JSON.stringify(own) });
      const narrowed = await json<Differing>(cli, `diff -f ${document}/group.json`, 1);
      expect(narrowed.items.map(({ clusters, notes }) => [clusters, notes])).toEqual([
        [["gold-1"], ["the Sync is removed; its objects stay"]],
        [["std-1"], ["only the apply options change; the objects stay the same"]],
        [["std-2"], ["the Sync is removed; its objects stay"]],
      ]);
      expect(world.fleet.requests().slice(requests)).toEqual([]);
    } finally {
      cli.close();
      await world.close();
    }
  });
});
