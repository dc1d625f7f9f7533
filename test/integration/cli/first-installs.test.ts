/** A chart that asks whether it is installed: render, plan and diff show what each cluster would get, by its rows. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { assignFleet, storeRendering } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const [source = "", , group = ""] = fleet.split("---\n");

let cli: CliFixture;

function config(name: string, size: string): ManifestObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "shop" }, data: { size } };
}

const chart = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {size: "2"}
{{ if .Release.IsInstall }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: seed, namespace: shop}
data: {size: "1"}
{{ else }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: upgraded, namespace: shop}
data: {size: "1"}
{{ end }}
`;

beforeAll(async () => {
  cli = await startCliFixture();
  const said = group.replace("source: app", "source: app, path: chart, apply: {defaultNamespace: shop}");
  cli.write("group.yaml", `${source}---\n${said}`);
  expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0 });
  mkdirSync(join(cli.folder, "app/chart/templates"), { recursive: true });
  cli.write("app/chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
  cli.write("app/chart/templates/all.yaml", chart);
  const both = [config("settings", "1")];
  const apart = await storeRendering(cli, [...both, config("seed", "1")], [...both, config("upgraded", "1")]);
  const plain = await storeRendering(cli, both);
  await assignFleet(cli, [
    { name: "new" },
    { name: "never-whole", assigned: apart, applied: "never" },
    { name: "installed", assigned: apart, applied: { event: "install" } },
    { name: "upgraded", assigned: apart },
    { name: "plain", assigned: plain },
  ]);
});

afterAll(() => cli.stop());

interface Planned {
  readonly items: readonly {
    readonly applies: unknown;
    readonly differences: readonly {
      readonly clusters: readonly string[];
      readonly changes: readonly {
        readonly event?: string;
        readonly objects: readonly { readonly id: { readonly name: string }; readonly how: string }[];
      }[];
    }[];
  }[];
}

describe("the objects of a chart that asks whether it is installed", { timeout: 120_000 }, () => {
  test("a plan counts the objects of an install or of an upgrade for each cluster, as its rows say", async () => {
    const ran = await cli.run("plan shop --source app=app -o json");
    expect(ran).toMatchObject({ code: 1, err: "" });
    const [plan] = (parseJson(ran.out) as unknown as Planned).items;
    const shown = plan?.differences.map(({ clusters, changes }) => [
      clusters.join(),
      ...changes.flatMap(({ event, objects }) => [event, ...objects.map(({ id, how }) => `${how} ${id.name}`)]),
    ]);
    expect(shown).toEqual([
      ["installed", "upgrade", "deleted seed", "changed settings", "created upgraded"],
      ["never-whole", "install", "changed settings"],
      ["new", "install", "created seed", "created settings"],
      ["plain", "upgrade", "changed settings", "created upgraded"],
      ["upgraded", "upgrade", "changed settings"],
    ]);
    expect(plan?.applies).toEqual({ installs: 2, upgrades: 3 });
    const text = await cli.run("plan shop --source app=app");
    expect(text.out).toContain("\nApplies: 2 first installs, 3 upgrades\n");
    expect(text.out).toContain("[2] cluster never-whole\n  shop.web changes, as a first install\n");
  });

  test.each([
    ["new", "a first install", ["seed", "settings"]],
    ["never-whole", "a first install", ["seed", "settings"]],
    ["installed", "an upgrade", ["settings", "upgraded"]],
  ])("the chart is rendered for cluster %s as %s", async (cluster, event, names) => {
    const ran = await cli.run(`render shop --source app=app --cluster ${cluster}`);
    expect(ran.code).toBe(0);
    expect(ran.out).toContain(`# shop.web on cluster ${cluster}, for ${event}, folder app\n`);
    expect([...ran.out.matchAll(/^ {2}name: (.*)$/gm)].map(([, name]) => name)).toEqual(names);
  });

  test("the chart is rendered once for clusters that would install, and once for the others", async () => {
    const ran = await cli.run("render shop --source app=app -o json");
    const { items } = parseJson(ran.out) as { readonly items: readonly Readonly<Record<string, unknown>>[] };
    expect(items.map(({ event, clusters }) => [event, clusters])).toEqual([
      ["install", ["never-whole", "new"]],
      ["upgrade", ["installed", "plain", "upgraded"]],
    ]);
  });

  test("a diff of a folder shows the objects that each cluster would get", async () => {
    const ran = await cli.run("diff shop --source app=app --cluster installed");
    expect(ran.out.match(/^diff .*$/gm)).toEqual([
      "diff ConfigMap shop/seed",
      "diff ConfigMap shop/settings",
      "diff ConfigMap shop/upgraded",
    ]);
    const pending = await cli.run("diff shop --source app=app --cluster never-whole");
    expect(pending.out.match(/^diff .*$/gm)).toEqual(["diff ConfigMap shop/settings"]);
  });
});
