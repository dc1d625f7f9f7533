/** A plan of clusters that have renderings. The real API reads the rows and renderings that functions wrote. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { parseJson } from "#shared/base/json.ts";
import { newestRowSchema, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Newer, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { assignFleet, fleetRow, sayArtifact, storeRendering, syncRows } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

let cli: CliFixture;
afterEach(() => cli.stop());

const [source = "", , group = ""] = fleet.split("---\n");

function config(name: string, data: Readonly<Record<string, string>>, namespace = "shop"): ManifestObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data };
}

const kept = { metadata: { name: "kept", namespace: "shop", annotations: { "helm.sh/resource-policy": "keep" } } };
const before = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "old" } },
  config("gone", {}, "old"),
  config("settings", { size: "1" }),
  { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data", namespace: "old" } },
  { apiVersion: "v1", kind: "ConfigMap", ...kept },
];

/** Another writer changes the fleet between two reads: the list of its Syncs, and the links of its renderings. */
class MovingTable extends MemoryTable {
  readonly #move: (table: MemoryTable) => Promise<void>;
  #reads = 0;

  constructor(move: (table: MemoryTable) => Promise<void>) {
    super({ pageItems: 500 });
    this.#move = move;
  }

  override async getMany<Type extends RowType, Kept extends Newer = undefined>(
    asked: readonly RowKeyOf<Type>[],
    reading: { readonly newer?: Kept } = {},
  ): Promise<readonly RowRead<Type, Kept>[]> {
    if (asked.some(({ sk }) => sk.startsWith("SYNC#"))) {
      this.#reads++;
      if (this.#reads === 2) await this.#move(this);
    }
    return super.getMany(asked, reading);
  }
}

/** The group of the fixture, with these objects in the working folder. */
async function start(after: readonly ManifestObject[], table = new MemoryTable({ pageItems: 500 })): Promise<void> {
  cli = await startCliFixtureOver(table);
  cli.write("group.yaml", `${source}---\n${group}`);
  expect((await cli.run("apply -f group.yaml -q --yes")).code).toBe(0);
  mkdirSync(join(cli.folder, "app"));
  cli.write("app/all.yaml", after.map((object) => JSON.stringify(object)).join("\n---\n"));
}

describe.each([10, 10_000])("a plan of %i clusters that have a rendering", { timeout: 300_000 }, (size) => {
  test("the plan names deleted, kept and guarded objects in as many lines, and reads the fleet in pages", async () => {
    await start([config("settings", { size: "2" })]);
    const assigned = await storeRendering(cli, before);
    const name = (index: number) => `c-${String(index).padStart(5, "0")}`;
    await assignFleet(
      cli,
      Array.from({ length: size }, (_, index) => ({ name: name(index), assigned })),
    );
    const asked = cli.requests();
    const shown = await cli.run("plan shop --source app=app");
    expect({ err: shown.err, code: shown.code }).toEqual({ err: "", code: 1 });
    // The requests are for the group, its Source, ClusterValues and Windows, one link, and the fleet in pages of 500.
    expect(cli.requests() - asked).toBe(6 + Math.floor(size / 500));
    expect(shown.out.split("\n").slice(1)).toEqual([
      `${size} clusters selected: ${size} would change, 0 unchanged`,
      "",
      `[1] ${size} clusters: c-00000, c-00001, c-00002, c-00003, c-00004 and ${size - 5} more`,
      "  shop.web changes",
      "    - ConfigMap old/gone",
      "    - ConfigMap shop/kept",
      "    ~ ConfigMap shop/settings",
      '        data.size  "1" -> "2"',
      "    - Namespace old",
      "    - PersistentVolumeClaim old/data",
      "",
      `Order: all ${size} of ${size}`,
      `Applies: 0 first installs, ${size} upgrades`,
      `Deletes: ${3 * size} objects on ${size} clusters: in a changed template after it is applied, in a removed template at the same time as others are applied`,
      `Stays: ConfigMap shop/kept on ${size} clusters: it is marked helm.sh/resource-policy: keep`,
      `Guard: Namespace old on ${size} clusters: it goes when nothing is left in it`,
      `Note: PersistentVolumeClaim old/data on ${size} clusters: the data of its volume is deleted with it, if the reclaim policy of its class is Delete`,
      "",
    ]);
    const known = cli.requests();
    const one = await cli.run(`plan shop --source app=app --cluster ${name(size - 1)} -o json`);
    expect(cli.requests() - known).toBe(6);
    const [plan] = (parseJson(one.out) as { readonly items: readonly Readonly<Record<string, unknown>>[] }).items;
    expect(plan).toMatchObject({ selected: 1, deletions: { objects: 3, clusters: 1 } });
    expect((await cli.run("plan shop --source app=app --cluster nowhere")).err).toContain(
      "cluster nowhere is not registered",
    );
  });
});

describe("a plan during a rollout", () => {
  const names = ["c-0", "c-1", "c-2", "c-3", "c-4"];
  async function planWhile(moved: readonly string[]) {
    let other = "";
    const table = new MovingTable(async (updatingTo) => {
      for (const name of moved)
        for (const put of syncRows({ name, assigned: other })) await updatingTo.write([{ put }]);
    });
    await start([config("settings", { size: "2" })], table);
    const assigned = await storeRendering(cli, [config("settings", { size: "1" })]);
    other = await storeRendering(cli, [config("settings", { size: "3" })]);
    await assignFleet(
      cli,
      names.map((name) => ({ name, assigned })),
    );
    return cli.run("plan shop --source app=app");
  }

  test("a plan compares with the rendering that it read while at least one cluster still uses it", async () => {
    const shown = await planWhile(names.slice(1));
    expect(shown).toMatchObject({ err: "", code: 1, out: expect.stringContaining("~ ConfigMap shop/settings") });
  });

  test("a plan that has nothing to compare with is an error, and its exit code does not announce changes", async () => {
    expect(await planWhile(names)).toEqual({
      code: 3,
      out: "",
      err: expect.stringMatching(
        /^error: a rendering of SyncGroup payments\/shop cannot be read: the fleet changed while it was read: Sync payments\/shop\.web on cluster c-\d of SyncGroup shop has no rendering sha256:\w+\n {2}next: try the same command again\n$/,
      ),
    });
  });
});

test("an object that only omits its namespace is neither new nor deleted", async () => {
  await start([config("settings", { size: "1" })]);
  const unnamed = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { size: "1" } };
  cli.write(
    "group.yaml",
    `${source}---\n${group.replace("source: app", "source: app, apply: {defaultNamespace: shop}")}`,
  );
  expect((await cli.run("apply -f group.yaml -q --yes")).code).toBe(0);
  await assignFleet(cli, [{ name: "c1", assigned: await storeRendering(cli, [unnamed]) }]);
  const shown = await cli.run("plan shop --source app=app");
  expect({ code: shown.code, lines: shown.out.match(/^(\[| {4}|Deletes).*/gm) }).toEqual({
    code: 1,
    lines: ["[1] cluster c1"],
  });
});

test("a plan without changes does not exit with 0 if the row of a cluster cannot be read", async () => {
  await start([config("settings", { size: "1" })]);
  const assigned = await storeRendering(cli, [config("settings", { size: "1" })]);
  await assignFleet(cli, [{ name: "c1", assigned }]);
  expect(await cli.run("plan shop --source app=app")).toMatchObject({ code: 0 });
  await cli.table.write([{ put: { ...fleetRow({ name: "c2" }), schema: newestRowSchema + 1 } }]);
  const shown = await cli.run("plan shop --source app=app");
  expect(shown.out).toContain("Not shown: cluster c2: a newer version of Starling wrote their rows");
  expect(shown.code).toBe(3);
  mkdirSync(join(cli.folder, "other"));
  cli.write("other/all.yaml", JSON.stringify(config("settings", { size: "2" })));
  expect(await cli.run("plan shop --source app=other")).toMatchObject({ code: 1 });
});

test("a plan has a hash of its content, whenever it is made, and another hash for any change", async () => {
  await start([config("settings", { size: "2" })]);
  const assigned = await storeRendering(cli, before);
  const c1 = { name: "c1", assigned };
  const c2 = { name: "c2", assigned };
  const hash = async (line = "") =>
    /^Plan ([0-9a-f]{7}) /.exec((await cli.run(`plan shop --source app=app${line}`)).out)?.[1];
  await assignFleet(cli, [c1, c2]);
  const first = await hash();
  expect(first).toMatch(/^[0-9a-f]{7}$/);
  expect(await hash()).toBe(first);
  expect(await hash(" --all")).toBe(first);
  await assignFleet(cli, [{ ...c1, labels: { unused: "x" } }, c2]);
  expect(await hash()).toBe(first);
  expect(await hash(" --cluster c1")).not.toBe(first);
  cli.write("app/all.yaml", JSON.stringify(config("settings", { size: "3" })));
  expect(await hash()).not.toBe(first);
  // The hash includes errors, which name no temporary folder.
  cli.write("app/all.yaml", "resources: [nothing.yaml]\n");
  cli.write("app/kustomization.yaml", "resources: [nothing.yaml]\n");
  const broken = await hash();
  expect(broken).not.toBe(first);
  expect(await hash()).toBe(broken);
});

describe("describe shows the origin of a cluster's values", () => {
  const templates = `{name: web, source: app, path: ".", substitute: true, parameters: {TIER: "{{ cluster.labels.tier }}", ZONE: "{{ cluster.values.zone }}"}, overrides: [{clusters: {names: [c2]}, parameters: {TIER: gold}, namePrefix: x-}, {clusters: {names: [c4]}, disabled: true}]}`;
  const values = `apiVersion: starling.dev/v1alpha1
kind: ClusterValues
metadata: {name: eu}
spec: {clusters: {names: [c1, c2]}, priority: 1, values: {zone: eu-west}}
`;

  async function startGiven(): Promise<void> {
    await start([]);
    const spec = group.replace(/\{name: web.*\}/, templates);
    cli.write("group.yaml", `${source}---\n${spec}---\n${values}`);
    expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0 });
    await sayArtifact(cli);
    const clusters = ["c1", "c2", "c3", "c4"].map((name) => ({
      name,
      labels: { tier: "std" },
      assigned: "sha256:77ab",
    }));
    await assignFleet(cli, clusters);
  }

  const inputs = async (line: string) => {
    const ran = await cli.run(line);
    expect(ran).toMatchObject({ code: 0, err: "" });
    return /^Inputs.*:\n(?: .*\n)*|^Inputs.*$/gm.exec(ran.out)?.[0].replaceAll(/ +/g, " ");
  };

  test("describe shows the origins for a Sync on a cluster, and for the templates of a group there", async () => {
    await startGiven();
    const given = `Inputs of web on c2; not assigned yet:
 path . template
 parameters.TIER gold overrides[0]
 parameters.ZONE eu-west template <- cluster.values.zone: clustervalues/eu
 substitute true template
 namePrefix x- overrides[0]
`;
    expect(await inputs("describe sync/shop.web --cluster c2")).toBe(given);
    expect(await inputs("describe syncgroup/shop --cluster c2")).toBe(given);
    expect(await inputs("describe syncgroup/shop --cluster c1")).toContain(
      " parameters.TIER std template <- cluster.labels.tier\n",
    );
    expect(await inputs("describe syncgroup/shop --cluster c4")).toContain(
      "Inputs of web on c4; disabled on this cluster:",
    );
    expect(await inputs("describe syncgroup/shop --cluster c3")).toContain("cluster c3 has no cluster.values.zone");
    expect(await inputs("describe syncgroup/shop --cluster nowhere")).toContain("cluster nowhere is not registered");
  });

  test("describe shows a group as it is written, and what each override sets for which clusters", async () => {
    await startGiven();
    const page = (await cli.run("describe syncgroup/shop")).out.replaceAll(/ +/g, " ");
    expect(page).toContain(
      "Parameters:\n web TIER {{ cluster.labels.tier }}\n web ZONE {{ cluster.values.zone }}\n\nOverrides:\n",
    );
    expect(page).toMatch(
      / web overrides\[0\] .*c2.* namePrefix, parameters\.TIER\n web overrides\[1\] .*c4.* disabled\n/,
    );
  });
});
