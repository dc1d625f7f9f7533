import { describe, expect, it } from "vitest";
import type { Row } from "#shared/domain/rows/row.ts";
import type { SyncRow } from "#shared/domain/rows/sync-row.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { restoreTable } from "#test/support/table-copy.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const clusters = ["c1", "c2", "c3"] as const;
const parts = ["app", "platform"] as const;

const first = {
  "app/namespace.yaml": namespaceManifest,
  "app/a.yaml": configMap("a", { color: "blue" }),
  "app/b.yaml": configMap("b", { color: "blue" }),
  "platform/p.yaml": configMap("p", { size: "1" }),
};
/** What the cluster has in the end of these is what no older table may take away. */
const later = [
  { "app/a.yaml": configMap("a", { color: "green" }), "app/b.yaml": null, "app/c.yaml": configMap("c", { k: "1" }) },
  { "app/c.yaml": configMap("c", { k: "2" }), "platform/p.yaml": configMap("p", { size: "2" }) },
  { "app/d.yaml": configMap("d", { k: "1" }), "platform/q.yaml": configMap("q", { size: "1" }) },
];

function documents(world: World, branch = "main") {
  const template = { source: "app", apply: { interval: "60s" } };
  return [
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch } }, interval: "30s" }),
    groupDocument("web", {
      clusters: { all: true },
      templates: parts.map((name) => ({ ...template, name, path: name })),
      rollout: { maxConcurrent: 3 },
    }),
  ];
}

async function begin(world: World): Promise<void> {
  await world.join(...clusters.map((name) => ({ name })));
  const commit = await world.createRepository("app", first);
  await world.apply(...documents(world));
  await world.untilInSync("web", commit);
}

/** `<cluster> <name> -> uid, data` of every ConfigMap that came from git. */
async function contents(world: World): Promise<Readonly<Record<string, { uid: string; data: unknown }>>> {
  const found: Record<string, { uid: string; data: unknown }> = {};
  for (const cluster of clusters) {
    for (const object of await world.fleet.objects(cluster)) {
      const { name, namespace: of, uid } = object.metadata as { name: string; namespace?: string; uid: string };
      const isOurs = object.kind === "ConfigMap" && of === namespace && name !== "kube-root-ca.crt";
      if (isOurs) found[`${cluster} ${name}`] = { uid, data: object.data };
    }
  }
  return found;
}

function syncsOf(rows: readonly Row[]): readonly SyncRow[] {
  return rows.filter((row): row is SyncRow => row.type === "SyncOnCluster");
}

function writes(world: World) {
  return world.fleet
    .requests()
    .filter(({ method, userAgent, dryRun }) => method !== "GET" && userAgent !== handUserAgent && !dryRun);
}

/** Until the workers have nothing to do, so that no write of before comes after the restore. */
async function untilAtRest(world: World): Promise<void> {
  await world.waitFor("no worker holds a lease", async () => {
    const leases = (await world.rows()).filter((row) => row.type === "Lease") as (Row & { owner?: string })[];
    return leases.every(({ owner }) => owner === undefined);
  });
}

/** Until every Sync has been refused what was assigned to it last; meanwhile no cluster may be written to. */
async function untilRefused(world: World): Promise<void> {
  await world.waitFor("every Sync is refused", async () => {
    expect(writes(world)).toEqual([]);
    const syncs = syncsOf(await world.rows());
    const refused = syncs.filter(
      ({ desired, observed }) => observed?.reason === "ClusterAhead" && observed.attempt === desired.attempt,
    );
    return refused.length === clusters.length * parts.length;
  });
}

/** Commits until the numbers of the rows are past those that the clusters remember. @returns the newest commit. */
async function pushOn(world: World): Promise<string> {
  let commit = "";
  for (let n = 0; ; n += 1) {
    const size = String(n);
    const attempts = syncsOf(await world.rows()).map(({ desired }) => desired.attempt);
    const files = { "app/a.yaml": configMap("a", { size }), "platform/p.yaml": configMap("p", { size: `since ${n}` }) };
    commit = await world.push("app", files);
    await world.waitFor("another attempt", async () =>
      syncsOf(await world.rows()).every(({ desired }, index) => desired.attempt > (attempts[index] ?? 0)),
    );
    await untilRefused(world);
    const syncs = syncsOf(await world.rows());
    if (syncs.every(({ desired, observed }) => desired.attempt > (observed?.remembered?.generation ?? 0)))
      return commit;
  }
}

describe("a table that was restored from a backup", () => {
  it.each([
    ["one revision behind", 1],
    ["three revisions behind", 3],
  ] as const)("%s, changes nothing before somebody accepts it", { timeout: 300_000 }, async (_what, behind) => {
    const world = await startWorld();
    const cli = openWorldCli(world);
    try {
      await begin(world);
      let commit = "";
      for (const files of later.slice(0, 3 - behind)) {
        commit = await world.push("app", files);
        await world.untilInSync("web", commit);
      }
      await untilAtRest(world);
      const backup = await world.rows();
      for (const files of later.slice(3 - behind)) {
        commit = await world.push("app", files);
        await world.untilInSync("web", commit);
      }
      await untilAtRest(world);
      const before = await contents(world);

      await restoreTable(world, backup);
      world.fleet.clearRequests();
      commit = await pushOn(world);
      expect(writes(world)).toEqual([]);
      expect(await contents(world)).toEqual(before);
    } finally {
      cli.close();
      await world.close();
    }
  });
});
