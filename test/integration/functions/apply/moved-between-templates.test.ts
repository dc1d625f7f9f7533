/**
 * An object that moves from one template of a group to another is taken over and keeps its uid. It is never deleted
 * meanwhile, whichever Sync is worked on first and wherever a worker dies.
 */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { labelsOf, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { workUntil } from "#test/support/played-cluster.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const soonMs = 70_000;
const intervalMs = 700_000;

type Apply = Partial<SyncRow["desired"]["apply"]>;

const claim = (at: string): ManifestObject => {
  const [inNamespace = "", name = ""] = at.split("/");
  return manifest({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace: inNamespace, name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });
};

describe.each(clusterTargets)("an object that moves between templates of a group, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  let spaces = 0;

  /** A worker with a namespace of its own. `deleted` has the names of objects that it has asked the server to delete. */
  async function begin() {
    const space = `moved-${++spaces}`;
    const deleted: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method === "delete") deleted.push(name);
    });
    const connector = { connect: async () => client, distrust() {} };
    const world = await new WorkerWorld(connector).begin();
    const at = (name: string) => `${space}/${name}`;
    const names = { a: `${space}-a`, b: `${space}-b`, c: `${space}-c` };
    const group = space;
    await world.assign(names.c, [namespace(space)], {}, { group });
    await world.work();
    /** Writes the status of claims as a controller does, so that each object has a newer version than the applied one. */
    const bind = async () => {
      for (const name of ["data", "more"]) {
        const path = `/api/v1/namespaces/${space}/persistentvolumeclaims/${name}`;
        if ((await cluster.statusOf(path)) === 404) continue;
        const body = { status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } } };
        await cluster.raw("PATCH", `${path}/status`, { as: "merge-patch", body });
      }
    };
    const assign = (of: keyof typeof names, objects: readonly ManifestObject[], apply: Apply = {}) =>
      world.assign(names[of], objects, apply, { group });
    return {
      ...{ world, connector, deleted, names, assign, group },
      data: claim(at("data")),
      more: claim(at("more")),
      settings: (of: string) => configMap(at(`of-${of}`)),
      /** The owner of the claim: its uid, and the Sync whose mark it carries. */
      async live(name = "data") {
        const path = `/api/v1/namespaces/${space}/persistentvolumeclaims/${name}`;
        if ((await cluster.statusOf(path)) === 404) return undefined;
        const found = await cluster.raw("GET", path);
        const set = labelsOf(found)[partOfLabel];
        const owner = Object.entries(names).find(
          ([, syncName]) => setIdOf({ syncNamespace: "tests", syncName }) === set,
        );
        const isGoing = stringAt(found, "metadata", "deletionTimestamp") !== undefined;
        return { uid: stringAt(found, "metadata", "uid"), owner: owner?.[0], isGoing };
      },
      async workOn(times = 4, aheadMs = soonMs) {
        for (let turn = 0; turn < times; turn += 1) {
          await world.work();
          await bind();
          world.aheadMs += aheadMs;
        }
      },
      phase: async (of: keyof typeof names) => world.phase(names[of]),
      problems: async (of: keyof typeof names) => (await world.sync(names[of]))?.observed?.problems ?? [],
    };
  }

  test.each([
    ["a", "b"],
    ["b", "a"],
  ] as const)("the object moves from template %s to %s, keeps its uid and is never deleted", async (from, to) => {
    const w = await begin();
    await w.assign(from, [w.data, w.settings(from)]);
    await w.assign(to, [w.settings(to)]);
    await w.workOn();
    const before = await w.live();
    expect(before).toMatchObject({ owner: from });

    await w.assign(from, [w.settings(from)]);
    await w.assign(to, [w.data, w.settings(to)]);
    await w.workOn();
    expect(await w.live()).toEqual({ ...before, owner: to });
    expect([await w.phase(from), await w.phase(to)]).toEqual(["Ready", "Ready"]);
    expect(w.deleted).toEqual([]);

    // The object belongs to the other template now, and is pruned when that template loses it.
    await w.workOn(2, intervalMs);
    await w.assign(to, [w.settings(to)]);
    await w.workOn();
    expect(w.deleted).toEqual(["data"]);
  });

  test("the template that lost the object keeps it until the other template has applied it", async () => {
    const w = await begin();
    await w.assign("a", [w.data, w.settings("a")]);
    await w.assign("b", [w.settings("b")]);
    await w.workOn();
    const before = await w.live();

    await w.assign("a", [w.settings("a")]);
    await w.assign("b", [w.data, w.settings("b")]);
    await w.world.pause(w.names.b);
    await w.workOn();
    await w.workOn(2, intervalMs);
    expect(await w.phase("a")).toBe("Ready");
    expect(await w.live()).toEqual(before);

    await w.assign("b", [w.data, w.settings("b")]);
    await w.workOn();
    await w.workOn(2, intervalMs);
    expect(await w.live()).toEqual({ ...before, owner: "b" });
    expect(w.deleted).toEqual([]);
  });

  test.each(["correct", "report", "off"] as const)(
    "with drift %s, the object is pruned if the other template drops it before it has applied it",
    async (drift) => {
      const w = await begin();
      await w.assign("a", [w.data, w.settings("a")]);
      await w.assign("b", [w.settings("b")]);
      await w.workOn();
      await w.assign("a", [w.settings("a")], { drift });
      await w.assign("b", [w.data, w.settings("b")]);
      await w.world.pause(w.names.b);
      await w.workOn();
      expect(w.deleted).toEqual([]);

      await w.assign("b", [w.settings("b")]);
      await w.workOn();
      await w.workOn(2, intervalMs);
      expect(w.deleted).toEqual(["data"]);
      expect([await w.phase("a"), await w.phase("b")]).toEqual(["Ready", "Ready"]);
    },
  );

  test.each(["correct", "report", "off"] as const)(
    "with drift %s, a guard that withholds this prune is named with its command, and its hash lets the prune through",
    async (drift) => {
      const w = await begin();
      const assign = (more: object) =>
        w.world.assign(w.names.a, [w.settings("a")], { drift }, { group: w.group, objectBounds: [0], ...more });
      await w.assign("a", [w.data, w.settings("a")]);
      await w.assign("b", [w.settings("b")]);
      await w.workOn();
      await w.assign("b", [w.data, w.settings("b")]);
      await w.world.pause(w.names.b);
      await assign({});
      await w.workOn();
      expect(await w.phase("a")).toBe("Ready");

      await w.assign("b", [w.settings("b")]);
      await w.workOn();
      await w.workOn(2, intervalMs);
      const { reason, message, guardedPrune } = await w.world.observedOf(w.names.a);
      const verb = `starling guard approve ${w.group} -n tests --hash ${guardedPrune?.hash}`;
      expect([reason, message]).toEqual(["PruneGuard", expect.stringContaining(verb)]);
      expect(w.deleted).toEqual([]);

      await assign({ mayPrune: [guardedPrune?.hash ?? ""] });
      await w.workOn();
      expect(w.deleted).toEqual(["data"]);
      expect(await w.world.observedOf(w.names.a)).not.toHaveProperty("guardedPrune");
    },
  );

  test("two templates swap their objects, and both keep their uids", async () => {
    const w = await begin();
    await w.assign("a", [w.data, w.settings("a")]);
    await w.assign("b", [w.more, w.settings("b")]);
    await w.workOn();
    const [data, more] = [await w.live("data"), await w.live("more")];
    await w.assign("a", [w.more, w.settings("a")]);
    await w.assign("b", [w.data, w.settings("b")]);
    await w.workOn();
    await w.workOn(2, intervalMs);
    expect([await w.live("data"), await w.live("more")]).toEqual([
      { ...data, owner: "b" },
      { ...more, owner: "a" },
    ]);
    expect([await w.phase("a"), await w.phase("b")]).toEqual(["Ready", "Ready"]);
    expect(w.deleted).toEqual([]);
  });

  test.each(["the deletion", "the new template"] as const)(
    "a renamed template keeps its objects when %s is worked on first",
    async (first) => {
      const w = await begin();
      await w.assign("a", [w.data, w.settings("x")]);
      await w.workOn();
      const before = await w.live();
      await w.assign("b", [w.data, w.settings("x")]);
      if (first === "the deletion") await w.world.pause(w.names.b);
      await w.world.assignDelete(w.names.a);
      if (first === "the deletion") {
        await w.workOn();
        expect(await w.phase("a")).toBe("Applying");
        expect(await w.problems("a")).toContainEqual(
          expect.objectContaining({ message: expect.stringContaining(`Sync tests/${w.names.b} of SyncGroup`) }),
        );
        await w.assign("b", [w.data, w.settings("x")]);
      }
      await w.workOn();
      await w.workOn(2, intervalMs);
      expect(await w.live()).toEqual({ ...before, owner: "b" });
      expect([await w.phase("a"), await w.phase("b")]).toEqual(["Gone", "Ready"]);
      expect(w.deleted.filter((name) => name === "data")).toEqual([]);
    },
  );

  test("an object that two templates have at once is refused by name in the second, and stays with the first", async () => {
    const w = await begin();
    await w.assign("a", [w.data]);
    await w.workOn();
    const before = await w.live();
    await w.assign("b", [w.data]);
    await w.workOn();
    expect(await w.problems("b")).toEqual([
      expect.objectContaining({
        reason: "DuplicateObject",
        message: expect.stringMatching(
          `is in two templates: Sync tests/${w.names.a} of SyncGroup ${w.group} also applies it; remove it from one of them`,
        ),
      }),
    ]);
    expect(await w.live()).toEqual(before);
    expect(await w.phase("a")).toBe("Ready");
  });

  test("nothing is pruned while the objects of the other templates cannot be read", async () => {
    const w = await begin();
    await w.assign("a", [w.data, w.settings("a")]);
    await w.workOn();
    const before = await w.live();
    await w.assign("b", [w.data, w.settings("b")]);
    const row = await w.world.sync(w.names.b);
    if (row === undefined) throw new Error("b was assigned");
    const desired = { ...row.desired, renderDigest: `sha256:${"0".repeat(64)}` };
    const lost: SyncRow = { ...row, version: row.version + 1, desired };
    await w.world.table.write([{ put: lost }]);
    await w.assign("a", [w.settings("a")]);
    await w.workOn();
    expect(await w.live()).toEqual(before);
    expect((await w.world.sync(w.names.a))?.observed?.message).toContain(
      "the desired state of the other Syncs of its owner cannot be read",
    );
    expect(w.deleted).toEqual([]);
  });

  test("another owner's object is refused by name, with the way to move it", async () => {
    const w = await begin();
    await w.assign("a", [w.data]);
    await w.workOn();
    const before = await w.live();
    const other = `${w.group}-other`;
    await w.world.assign(other, [w.data], {}, { group: "another" });
    await w.workOn();
    const [problem] = (await w.world.sync(other))?.observed?.problems ?? [];
    expect(problem?.reason).toBe("ForeignOwner");
    expect(problem?.message).toContain(
      `belongs to Sync tests/${w.names.a} of SyncGroup ${w.group}; remove it there without deleting it`,
    );
    expect(problem?.message).toContain("starling.dev/prune: disabled");
    expect(await w.live()).toEqual(before);
  });

  describe("a move during which the worker dies at any write", () => {
    test.each([
      ["a", "b", "before"],
      ["a", "b", "after"],
      ["b", "a", "before"],
      ["b", "a", "after"],
    ] as const)(
      "the object keeps its uid from template %s to %s if the worker dies %s the write takes effect",
      { timeout: 300_000 },
      async (from, to, when) => {
        let deaths = 0;
        for (let at = 1; ; at += 1) {
          const w = await begin();
          await w.assign(from, [w.data, w.settings(from)]);
          await w.assign(to, [w.settings(to)]);
          await w.workOn(2);
          const before = await w.live();
          await w.assign(from, [w.settings(from)]);
          await w.assign(to, [w.data, w.settings(to)]);
          const hasDied = await workUntil(w.world, w.connector, { at, when });
          w.world.aheadMs += intervalMs;
          await w.workOn(4, intervalMs);
          expect([at, await w.live(), w.deleted]).toEqual([at, { ...before, owner: to }, []]);
          expect([await w.phase(from), await w.phase(to)]).toEqual(["Ready", "Ready"]);
          if (!hasDied) break;
          deaths += 1;
        }
        expect(deaths).toBeGreaterThan(8);
      },
    );
  });
});
