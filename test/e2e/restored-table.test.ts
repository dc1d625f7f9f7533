import { describe, expect, test } from "vitest";
import { registerClusters } from "#local/machine/register-clusters.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";
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
/** An older table may not remove what the clusters have after these revisions. */
const later = [
  { "app/a.yaml": configMap("a", { color: "green" }), "app/b.yaml": null, "app/c.yaml": configMap("c", { k: "1" }) },
  { "app/c.yaml": configMap("c", { k: "2" }), "platform/p.yaml": configMap("p", { size: "2" }) },
  { "app/d.yaml": configMap("d", { k: "1" }), "platform/q.yaml": configMap("q", { size: "1" }) },
];

/** Every cluster refuses its assignment. The first refusals must not halt the rollout before the others are assigned. */
const atOnce = { maxConcurrent: 3, maxFailures: 3 };

function documents(world: World, branch = "main", rollout: Readonly<Record<string, unknown>> = atOnce) {
  const template = { source: "app", apply: { interval: "60s" } };
  return [
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch } }, interval: "30s" }),
    groupDocument("web", {
      clusters: { all: true },
      templates: parts.map((name) => ({ ...template, name, path: name })),
      rollout,
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

/** Deletes all rows and registers the clusters again. */
async function loseTable(world: World): Promise<void> {
  await restoreTable(world, []);
  world.fleet.clearRequests();
  await registerClusters(
    clusters.map((name) => ({ connection: world.fleet.connection(name) })),
    world.machine,
    world.session,
  );
}

/** Waits until no worker is busy, so that no older write happens after the restore. */
async function untilIdle(world: World): Promise<void> {
  await world.waitFor("no worker holds a lease", async () => {
    const leases = (await world.rows()).filter((row) => row.type === "Lease") as (Row & { owner?: string })[];
    return leases.every(({ owner }) => owner === undefined);
  });
}

/** Waits until every cluster has refused its newest assignment. No cluster may be written to meanwhile. */
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
    const files = { "app/a.yaml": configMap("a", { size }), "platform/p.yaml": configMap("p", { size: `since ${n}` }) };
    commit = await world.push("app", files);
    // The restored rows have an older commit than git, so wait for exactly this commit.
    await world.waitFor(`${commit.slice(0, 8)} is assigned`, async () =>
      syncsOf(await world.rows()).every(({ desired }) => desired.revision.endsWith(commit)),
    );
    await untilRefused(world);
    const syncs = syncsOf(await world.rows());
    if (syncs.every(({ desired, observed }) => desired.attempt > (observed?.remembered?.attempt ?? 0))) return commit;
  }
}

/** Checks that `recover` shows every Sync first, that nothing was written before it, and that everything is in sync after it. */
async function recovers(world: World, commit: string): Promise<void> {
  const cli = openWorldCli(world);
  try {
    // The newest assignment may not have reached its cluster yet.
    await world.waitFor("every Sync is shown", async () => {
      const shown = await cli.run("recover --all --dry-run");
      expect(shown.code).toBe(0);
      const lines = shown.out.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2).join(" "));
      return clusters.every((cluster) => parts.every((name) => lines.includes(`${cluster} ${namespace}/web.${name}`)));
    });
    expect(writes(world)).toEqual([]);
    expect(await cli.run("recover --all --yes --reason restored")).toMatchObject({ code: 0 });
    await world.untilInSync("web", commit, 240);
    expect(await cli.run("recover --all --dry-run")).toMatchObject({ code: 0, out: "" });
  } finally {
    cli.close();
  }
}

async function inOrder(world: World, changes: readonly (typeof later)[number][]): Promise<void> {
  for (const files of changes) await world.untilInSync("web", await world.push("app", files));
  await untilIdle(world);
}

interface GroupStatus {
  readonly status: { readonly state?: string };
}

type Contents = Awaited<ReturnType<typeof contents>>;

function uidsIn(found: Contents) {
  return Object.fromEntries(Object.entries(found).map(([place, { uid }]) => [place, uid]));
}

describe.each(storyTargets)("on $name", (target) => {
  describe("a table that was restored from a backup", () => {
    test.each([
      ["one revision behind", 1],
      ["three revisions behind", 3],
    ] as const)(
      "a table that is %s changes no cluster before somebody accepts it",
      { timeout: 500_000 },
      async (_what, behind) => {
        const world = await startWorld({ target });
        try {
          await begin(world);
          await inOrder(world, later.slice(0, 3 - behind));
          const backup = await world.rows();
          await inOrder(world, later.slice(3 - behind));
          const before = await contents(world);

          await restoreTable(world, backup);
          world.fleet.clearRequests();
          const commit = await pushOn(world);
          expect(await contents(world)).toEqual(before);
          await recovers(world, commit);
          expect(uidsIn(await contents(world))).toEqual(uidsIn(before));
        } finally {
          await world.close();
        }
      },
    );

    test("a table from before a change of branch continues with the branch that the documents name", {
      timeout: 500_000,
    }, async () => {
      const world = await startWorld({ target });
      try {
        await begin(world);
        await untilIdle(world);
        const backup = await world.rows();
        const at = new Date(Date.UTC(2026, 1, 1));
        const files = { ...later[0], "platform/only.yaml": configMap("only", { here: "yes" }) };
        const release = await world.git.commitFiles("app", files, {
          message: "Release",
          at,
          branch: "release",
          onto: "main",
        });
        await world.apply(...documents(world, "release"));
        await world.untilInSync("web", release);
        await untilIdle(world);
        const before = await contents(world);

        await restoreTable(world, backup);
        world.fleet.clearRequests();
        // This commit is on the restored rows' branch. Applying it would delete objects that only the other branch has.
        await pushOn(world);
        expect(await contents(world)).toEqual(before);
        await world.apply(...documents(world, "release"));
        await recovers(world, release);
        expect(await contents(world)).toEqual(before);
      } finally {
        await world.close();
      }
    });
  });

  test("a new table finds the objects of the lost table again", { timeout: 500_000 }, async () => {
    const world = await startWorld({ target });
    try {
      await begin(world);
      await inOrder(world, later);
      const before = await contents(world);

      await loseTable(world);
      await world.apply(...documents(world));
      await untilRefused(world);
      expect(await contents(world)).toEqual(before);
      // An object left git meanwhile. It is pruned, although no row knew it.
      const commit = await world.push("app", { "app/d.yaml": null });
      await recovers(world, commit);
      const { "c1 d": _1, "c2 d": _2, "c3 d": _3, ...kept } = uidsIn(before);
      expect(uidsIn(await contents(world))).toEqual(kept);
    } finally {
      await world.close();
    }
  });

  test("a lost table needs one recover, even when the group halts at its first cluster", {
    timeout: 500_000,
  }, async () => {
    const world = await startWorld({ target });
    try {
      await begin(world);
      await untilIdle(world);
      const before = await contents(world);
      await loseTable(world);
      await world.apply(...documents(world, "main", { maxConcurrent: 1, maxFailures: 0 }));
      await world.waitFor("the group halts", async () => {
        const groups = (await world.rows()).filter((row) => row.type === "SyncGroup") as (Row & GroupStatus)[];
        return groups.some(({ status }) => status.state === "Halted");
      });
      expect(new Set(syncsOf(await world.rows()).map(({ cluster }) => cluster)).size).toBe(1);
      expect(writes(world)).toEqual([]);
      const commit = await world.push("app", { "app/a.yaml": configMap("a", { color: "green" }) });
      const cli = openWorldCli(world);
      try {
        expect(await cli.run("recover --all --yes --reason lost")).toMatchObject({ code: 0 });
        await world.untilInSync("web", commit, 240);
      } finally {
        cli.close();
      }
      expect(uidsIn(await contents(world))).toEqual(uidsIn(before));
      const stageRuns = (await world.rows()).filter((row) => row.type === "StageRun") as (Row & { phase: string })[];
      expect(stageRuns.filter(({ phase }) => phase === "Halted")).toEqual([]);
    } finally {
      await world.close();
    }
  });
});
