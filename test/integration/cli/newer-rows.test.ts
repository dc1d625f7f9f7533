/** The output for rows that a newer version wrote, after its deployment was rolled back. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, newestRowSchema, type RowKey } from "#shared/fleet/rows/row.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  cli.write("fleet.yaml", fleet);
  const another =
    "apiVersion: starling.dev/v1alpha1\nkind: Source\nmetadata: {name: lib}\nspec: {git: {url: https://a.example/b}}\n";
  cli.write("lib.yaml", another);
  expect((await cli.run("apply -f fleet.yaml -f lib.yaml")).code).toBe(0);
  await cli.table.write([{ put: syncRow("c1", "shop.web") }]);
  await storeRollout(cli, { number: 1, states: { all: ["Succeeded", "Succeeded"] } });
});
afterEach(() => cli.stop());

async function makeNewer(key: RowKey): Promise<void> {
  const remove = ["spec", "status", "labels", "operations", "desired", "observed", "owner", "stages", "state"];
  await cli.table.write([{ update: key, set: { schema: newestRowSchema + 1 }, remove }]);
}

const stageRun = { rollout: 1, stage: "all", snapshot: 0 };
const object = (kind: "Source" | "SyncGroup" | "Sync", name: string) => keys.object("payments", kind, name);
const rowOf: Readonly<Record<string, readonly [RowKey, string]>> = {
  source: [object("Source", "app"), "source/app"],
  cluster: [keys.cluster("c1"), "cluster/c1"],
  syncgroup: [object("SyncGroup", "shop"), "syncgroup/shop"],
  sync: [keys.sync("c1", "payments", "shop.web"), "sync/shop.web --cluster c1"],
  rollout: [keys.rollout(shop, 1), "rollout/shop-1"],
};

describe.each(Object.entries(rowOf))("a %s", (kind, [key, name]) => {
  const why = `the row ${keyText(key)} has schema 4, and this version of Starling reads up to 3`;

  test("the unreadable object is a line of the list, asks for action, and says why", async () => {
    await makeNewer(key);
    const { code, out, err } = await cli.run(`get ${kind} -o wide`);
    expect(code).toBe(0);
    expect(err).not.toMatch(/error/);
    const [line] = out.split("\n").filter((one) => one.includes("Unreadable"));
    expect(line).toContain(name.split(/[/ ]/)[1]);
    expect(line).toContain(`NewerRow: ${why}`);
    expect(line).toMatch(/update the stack to the version that wrote it\s*$/);
  });

  test("the unreadable object is shown alone, and described, with the remedy", async () => {
    await makeNewer(key);
    const shown = await cli.run(`get ${name}`);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.out).toMatch(/^NAME.*\n.*Unreadable.*NewerRow/);
    const { code, out } = await cli.run(`describe ${name}`);
    expect(code).toBe(0);
    expect(out).toMatch(/^Name: +\S+\n/);
    expect(out).toMatch(/^Status: +Unreadable/m);
    expect(out).toContain(why);
    expect(out).toContain("update the stack to the version that wrote it");
    expect(out).not.toMatch(/undefined|NaN/);
  });

  test("the unreadable object is valid JSON without a spec to apply", async () => {
    await makeNewer(key);
    const list = JSON.parse((await cli.run(`get ${kind} -o json`)).out);
    const [item] = list.items.filter((one: { status: { state?: string } }) => one.status.state === "Unreadable");
    expect(item).toMatchObject({ kind: list.kind.replace(/List$/, ""), metadata: { name: expect.any(String) } });
    expect(item.status.conditions).toMatchObject([{ type: "Ready", status: "Unknown", reason: "NewerRow" }]);
    const one = JSON.parse((await cli.run(`get ${name} -o json`)).out);
    expect(one).toEqual(item);
    if (kind === "sync" || kind === "rollout") return;
    const input = JSON.stringify(one);
    expect((await cli.run("validate -f -", { input })).code).toBe(2);
  });
});

describe("commands", () => {
  const refused: readonly (readonly [string, RowKey])[] = [
    ["apply -f fleet.yaml", object("Source", "app")],
    ["apply -f fleet.yaml --dry-run=server", object("SyncGroup", "shop")],
    ["delete source/app --yes", object("Source", "app")],
    ["delete syncgroup/shop --yes", object("SyncGroup", "shop")],
    ["delete cluster/c1 --cascade=orphan --yes", keys.cluster("c1")],
    ["suspend syncgroup/shop --reason x", object("SyncGroup", "shop")],
    ["resume syncgroup/shop", object("SyncGroup", "shop")],
    ["reconcile source/app", object("Source", "app")],
    ["reconcile syncgroup/shop --wait", object("SyncGroup", "shop")],
    ["cluster accept c1", keys.cluster("c1")],
    ["cluster accept c1 --uid b --yes", keys.cluster("c1")],
    ["prune sync/shop.web --cluster c1 --yes", keys.sync("c1", "payments", "shop.web")],
    ["rollout status shop", keys.stageRun(shop, stageRun)],
    ["rollout status shop", keys.rolloutState(shop)],
    ["rollout status shop --number 1", keys.rollout(shop, 1)],
    ["rollout refresh shop --reason x", object("SyncGroup", "shop")],
  ];

  test.each(refused)("%s is refused with the row, the versions and the remedy", async (line, key) => {
    await makeNewer(key);
    const rows = cli.table.all();
    const { code, err } = await cli.run(line);
    expect(code).toBe(1);
    expect(err).toContain(`the row ${keyText(key)} has schema 4, and this version of Starling reads up to 3`);
    expect(err).toContain("update the stack to the version that wrote it");
    expect(cli.table.all()).toEqual(rows);
  });

  test("a reconcile that waits ends when a Source that it waits for cannot be read", async () => {
    await makeNewer(object("Source", "app"));
    const { code, err } = await cli.run("reconcile syncgroup/shop --with-source --wait --timeout 20s");
    expect(code).toBe(1);
    expect(err).toContain(`the row ${keyText(object("Source", "app"))} has schema 4`);
  });

  test("a recovery names the Syncs that it cannot read, and is not complete", async () => {
    await makeNewer(keys.sync("c1", "payments", "shop.web"));
    const { code, err } = await cli.run("recover --all --dry-run");
    expect(err).toContain("payments/shop.web on c1 is skipped");
    expect(code).toBe(1);
  });
});

test("the overview of a group names a cluster that has a slot and cannot be read", async () => {
  await storeRollout(cli, { number: 2, states: { all: ["Applying", "Waiting"] } });
  await cli.table.write([{ update: keys.rolloutState(shop), set: { unreadable: ["c1"] } }]);
  await makeNewer(keys.slot(shop, "c1"));
  const { out, code, err } = await cli.run("rollout status shop");
  expect(err).not.toMatch(/error/);
  expect(out).toMatch(/newer +- +- +rows of cluster c1 were written by a newer version .* update the stack/);
  expect(out).toMatch(/c1 .*Unreadable.*NewerRow/);
  expect(code).toBe(0);
});

test("lists show all other objects: of a rollout, of a cluster, of the fleet", async () => {
  await makeNewer(keys.target(shop, stageRun, "c2"));
  const status = await cli.run("rollout status shop --all");
  expect(status.out).toMatch(/c1 .*Succeeded/);
  expect(status.out).toMatch(/c2 .*Unreadable.*NewerRow/);
  await makeNewer(keys.sync("c1", "payments", "shop.web"));
  const clusters = await cli.run("get clusters");
  expect(clusters.out).toMatch(/c1 .*0\/1/);
  const described = await cli.run("describe cluster/c1");
  expect(described).toMatchObject({ code: 0 });
  expect(described.out).toMatch(/shop\.web +c1 .*Unreadable/);
  const found = await cli.run("get syncs --state unreadable");
  expect(found.out).toMatch(/shop\.web +c1 /);
  expect((await cli.run("get syncs --state ready")).out).toBe("");
});
