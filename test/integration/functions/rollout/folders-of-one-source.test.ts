/** One Source of a repository with 300 folders, and a Sync for each: a commit in one folder is for one Sync. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { PlannerWorld, silentLog } from "#test/support/planner-world.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const namespace = "shop";
const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
let server: OwnGitServer;

beforeAll(async () => {
  server = await startOwnGitServer();
});

afterAll(async () => {
  await server?.stop();
});

/** A Source of all folders, and a Sync of each on the cluster c1. */
async function worlds(): Promise<{ readonly source: SourceWorld; readonly planner: PlannerWorld }> {
  const files = names.map((name) => [`services/${name}/a.yaml`, `of: ${name}`] as const);
  await server.createRepository("mono", Object.fromEntries(files));
  const source = new SourceWorld(new MemoryTable({ pageItems: 1000 }));
  source.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  const planner = new PlannerWorld(source);
  planner.now = source.now;
  await source.put({ git: { url: server.url("mono"), ref: { branch: "main" } }, paths: ["services"] });
  await planner.addCluster("c1", "all");
  for (const name of names) {
    const put: OwnerRow = {
      ...keys.object(namespace, "Sync", name),
      type: "Sync",
      schema: rowSchema,
      version: 1,
      namespace,
      name,
      uid: name,
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: planner.now.toISOString(),
      operations: {},
      spec: syncSpec.parse({ cluster: "c1", source: "app", path: `services/${name}` }),
      status: { conditions: [] },
    };
    await source.table.write([{ put }]);
  }
  return { source, planner };
}

/** The planner looks at every Sync, until nothing is left to do; every rendering and apply ends well. */
async function rollOut(planner: PlannerWorld): Promise<void> {
  const { table, sender, blobs } = planner;
  const planAll = async () => {
    for (const name of names) {
      const until = new Date(planner.now.getTime() + 60_000);
      const clock = { now: () => planner.now };
      const ports = { table, sender, blobs, clock, ids: randomIds, log: silentLog, installation: "test" };
      await planOwner({ namespace, kind: "Sync", name }, { until }, ports);
    }
  };
  await planAll();
  await planner.renderAll();
  await planAll();
  for (const name of names) {
    const sync = await planner.sync("c1", name);
    if (sync?.observed?.attempt !== sync?.desired.attempt) await planner.observe("c1", "Ready", { name });
  }
  await planAll();
}

async function attempts(planner: PlannerWorld): Promise<Readonly<Record<string, number>>> {
  const found = await Promise.all(
    names.map(async (name) => [name, (await planner.sync("c1", name))?.desired.attempt ?? 0] as const),
  );
  return Object.fromEntries(found);
}

test("a commit in one of 300 folders causes one rendering and one attempt [source.files.one-folder]", {
  timeout: 300_000,
}, async () => {
  const { source, planner } = await worlds();
  await source.resolve();
  await rollOut(planner);
  const made = planner.rows<RenderingRow>("Rendering").length;
  const before = await attempts(planner);
  expect(made).toBe(300);
  expect(new Set(Object.values(before))).toEqual(new Set([1]));

  const commit = await server.commitFiles("mono", { "services/s7/a.yaml": "of: another" }, { message: "Change s7" });
  planner.advanceClock(3600);
  source.now = planner.now;
  const { status } = await source.resolve();
  expect(status.artifact?.revision).toBe(`main@sha1:${commit}`);
  await rollOut(planner);

  expect(planner.rows<RenderingRow>("Rendering").length - made).toBe(1);
  const after = await attempts(planner);
  expect(names.filter((name) => after[name] !== before[name])).toEqual(["s7"]);
  expect(after.s7).toBe(2);
});
