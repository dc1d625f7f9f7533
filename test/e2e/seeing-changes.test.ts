// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is substituted
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
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

/** What the command may not do: anything that is written to the table, a queue or a cluster. */
function writesSince(world: World) {
  const [calls, requests] = [world.calls().length, world.fleet.requests().length];
  return () => ({
    clusters: world.fleet
      .requests()
      .slice(requests)
      .filter(({ method }) => method !== "GET"),
    calls: world
      .calls()
      .slice(calls)
      .filter(({ function: by, action }) => by === "api" && !/:(Get|BatchGet|Query|List)/.test(action)),
  });
}

const plurals: Readonly<Record<string, string>> = { ConfigMap: "configmaps", Secret: "secrets" };

/** The object as its API server has it. */
async function applied(world: World, cluster: string, { kind, metadata }: ManifestObject) {
  const plural = plurals[kind];
  const path =
    plural === undefined
      ? `/api/v1/namespaces/${metadata.name}`
      : `/api/v1/namespaces/${namespace}/${plural}/${metadata.name}`;
  return (await world.kubectl(cluster, { method: "GET", path })).object;
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test("render gives the bytes that the fleet has, of what is stored and of a folder, and writes nothing", async () => {
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
      expect(written()).toEqual({ clusters: [], calls: [] });
    } finally {
      cli.close();
      await world.close();
    }
  });
});
