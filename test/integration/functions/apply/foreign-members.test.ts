/** Members that no inventory records, as in a cluster restored from a backup, are named, and pruned on request. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Observed, PruneAct, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { annotationsOf, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { type ForeignObject, partOfLabel } from "#shared/kube/membership.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clientWith } from "#test/support/client-with.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const intervalMs = 700_000;

describe.each(clusterTargets)("members that nobody recorded on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  class RestoredWorld extends WorkerWorld {
    readonly name = `back-${randomUUID().slice(0, 8)}`;

    async give(names: readonly string[], apply: Partial<SyncRow["desired"]["apply"]> = {}): Promise<Observed> {
      await this.assign(
        this.name,
        [namespace(this.name), ...names.map((name) => configMap(`${this.name}/${name}`))],
        apply,
      );
      await this.work();
      return this.observed();
    }

    observed(): Promise<Observed> {
      return this.observedOf(this.name);
    }

    async checkLater(): Promise<Observed> {
      this.aheadMs += intervalMs;
      await this.work();
      return this.observed();
    }

    get setId(): string {
      return setIdOf({ syncNamespace: "tests", syncName: this.name });
    }

    /** Puts the object back as an earlier revision left it: applied by Starling, with the label of the set. */
    async restore(object: ManifestObject): Promise<string> {
      const kind = await kindOf(object);
      const labels = { [partOfLabel]: this.setId };
      const labelled = { ...object, metadata: { ...object.metadata, labels } };
      return stringAt((await cluster.client.apply(kind, labelled)).object, "metadata", "uid") ?? "";
    }

    /** Writes what `api` writes when somebody has accepted the objects. */
    async ask(objects: PruneAct["objects"]): Promise<void> {
      const row = await this.sync(this.name);
      if (row === undefined) throw new Error(`there is no Sync ${this.name}`);
      const number = (row.operations?.prune?.number ?? 0) + 1;
      const prune: PruneAct = { by: "someone", at: this.clock.now().toISOString(), number, objects };
      await this.put({ ...row, operations: { prune } });
    }

    async put(row: SyncRow): Promise<void> {
      const next: SyncRow = { ...row, version: row.version + 1 };
      await this.table.write([{ put: next, when: { version: row.version } }]);
    }

    /** Runs a check that somebody asked for. */
    async reconcile(): Promise<Observed> {
      const row = await this.sync(this.name);
      if (row === undefined) throw new Error(`there is no Sync ${this.name}`);
      await this.put({ ...row, reconcile: (row.reconcile ?? 0) + 1 });
      return this.checkLater();
    }

    path(name: string): string {
      return `/api/v1/namespaces/${this.name}/configmaps/${name}`;
    }
  }

  async function kindOf({ apiVersion, kind }: ManifestObject): Promise<KindInfo> {
    const group = apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
    const found = await cluster.client.lookup({ group, kind });
    if (found.outcome !== "found") throw new Error(`${kind} is not served`);
    return found.info;
  }

  function begin(): Promise<RestoredWorld> {
    return new RestoredWorld({ connect: async () => cluster.client, distrust() {} }).begin();
  }

  const accepted = (objects: readonly ForeignObject[] = []) => objects.map(({ id, uid }) => ({ id, uid }));
  const secret = (at: string, name: string) =>
    manifest({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: at } });

  test("unrecorded members are named, stay until somebody accepts their deletion, and are then deleted; what git has stays", async () => {
    const world = await begin();
    await world.give(["a"]);
    const old = await world.restore(configMap(`${world.name}/old`));
    const found = await world.checkLater();
    expect(found).toMatchObject({ phase: "Ready", objects: { foreign: 1 } });
    const id = { group: "", kind: "ConfigMap", namespace: world.name, name: "old" };
    expect(found.foreign).toEqual([{ id, uid: old, member: true }]);
    expect(await cluster.statusOf(world.path("old"))).toBe(200);

    await world.ask(accepted(found.foreign));
    const after = await world.checkLater();
    expect(after).toMatchObject({ phase: "Ready", handledPrune: 1, objects: { total: 2, foreign: 0 } });
    expect(after).not.toHaveProperty("foreign");
    expect(await cluster.statusOf(world.path("old"))).toBe(404);
    expect(await cluster.statusOf(world.path("a"))).toBe(200);
  });

  test("accepted members that git has again stay, even if nothing has recorded them", async () => {
    const world = await begin();
    await world.give(["a"]);
    await cluster.raw("DELETE", world.path("a"));
    const uid = await world.restore(configMap(`${world.name}/a`));
    await world.ask([{ id: { group: "", kind: "ConfigMap", namespace: world.name, name: "a" }, uid }]);
    const after = await world.checkLater();
    expect(after).toMatchObject({ handledPrune: 1 });
    const now = await cluster.raw("GET", world.path("a"));
    expect(stringAt(now, "metadata", "uid")).toBe(uid);
  });

  test("members of kinds that the Sync no longer has are found when somebody asks for a check, and stay named", async () => {
    const world = await begin();
    await world.assign(world.name, [namespace(world.name), secret(world.name, "s"), configMap(`${world.name}/a`)]);
    await world.work();
    const parent = "/api/v1/namespaces/starling-system/configmaps";
    const before = await cluster.raw("GET", `${parent}/tests.${world.name}`);
    await world.give(["a"]);
    await world.restore(secret(world.name, "s"));
    // The backup contains the parent object of its time.
    const now = await cluster.raw("GET", `${parent}/tests.${world.name}`);
    const metadata = {
      ...(before as ManifestObject).metadata,
      resourceVersion: stringAt(now, "metadata", "resourceVersion"),
    };
    await cluster.raw("PUT", `${parent}/tests.${world.name}`, { body: { ...before, metadata } });
    expect((await world.checkLater()).objects.foreign).toBe(0);

    const found = await world.reconcile();
    expect(found.foreign?.map(({ id, member }) => [id.kind, id.name, member])).toEqual([["Secret", "s", true]]);
    expect((await world.checkLater()).foreign).toEqual(found.foreign);
    // Another attempt does not forget the members, or the kinds to search for them.
    expect((await world.give(["a", "b"])).foreign).toEqual(found.foreign);
    const kinds = "applyset.kubernetes.io/contains-group-kinds";
    const after = await cluster.raw("GET", `${parent}/tests.${world.name}`);
    expect(annotationsOf(after)[kinds]).toBe("ConfigMap,Namespace,Secret");
  });

  test.each<[string, (world: RestoredWorld) => Promise<unknown>]>([
    [
      "other objects have their names by now",
      async (world) => {
        await cluster.raw("DELETE", world.path("old"));
        await world.restore(configMap(`${world.name}/old`));
      },
    ],
    [
      "an annotation forbids to delete them by now",
      (world) =>
        cluster.raw("PATCH", world.path("old"), {
          body: { metadata: { annotations: { "starling.dev/prune": "disabled" } } },
          as: "merge-patch",
        }),
    ],
    [
      "somebody removed their label",
      (world) =>
        cluster.raw("PATCH", world.path("old"), {
          body: { metadata: { labels: { [partOfLabel]: null } } },
          as: "merge-patch",
        }),
    ],
    [
      "a controller owns them by now",
      async (world) => {
        const owner = await cluster.raw("GET", world.path("a"));
        const uid = stringAt(owner, "metadata", "uid");
        const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "a", uid, controller: true }];
        await cluster.raw("PATCH", world.path("old"), { body: { metadata: { ownerReferences } }, as: "merge-patch" });
      },
    ],
    ["git has them again", (world) => world.give(["a", "old"])],
  ])("accepted members stay when %s", async (_name, meanwhile) => {
    const world = await begin();
    await world.give(["a"]);
    await world.restore(configMap(`${world.name}/old`));
    const found = await world.checkLater();
    await meanwhile(world);
    await world.ask(accepted(found.foreign));
    expect(await world.checkLater()).toMatchObject({ phase: "Ready", handledPrune: 1 });
    expect(await cluster.statusOf(world.path("old"))).toBe(200);
  });

  test.each([
    ["with 403 is reported, and is tried again on another request", 403, "Failed", 1],
    ["with 500 is tried again by itself", 500, "Retrying", undefined],
  ] as const)("a deletion of a member that is refused %s", async (_what, status, phase, handledPrune) => {
    let refuses = true;
    const client = clientWith(cluster.client, {
      async delete(kind, key, precondition) {
        if (!refuses) return cluster.client.delete(kind, key, precondition);
        const reason = status === 403 ? "Forbidden" : "InternalError";
        const request = { method: "DELETE", path: `/api/v1/${kind.plural}/${key.name}`, secret: false };
        throw new KubeError(request, { status, reason, message: "not today", causes: [] });
      },
    });
    const world = await new RestoredWorld({ connect: async () => client, distrust() {} }).begin();
    await world.give(["a"]);
    await world.restore(configMap(`${world.name}/old`));
    const { foreign } = await world.checkLater();
    await world.ask(accepted(foreign));
    const refused = await world.checkLater();
    expect(refused).toMatchObject({ phase, reason: "PruneFailed" });
    expect(refused.handledPrune).toBe(handledPrune);
    expect(refused.problems[0]?.message).toContain("not today");

    refuses = false;
    await world.checkLater();
    expect(await cluster.statusOf(world.path("old"))).toBe(handledPrune === undefined ? 404 : 200);
    if (handledPrune !== undefined) await world.ask(accepted(foreign));
    expect(await world.checkLater()).toMatchObject({ phase: "Ready" });
    expect(await cluster.statusOf(world.path("old"))).toBe(404);
  });

  test("objects that only have the label are named, and never pruned on request", async () => {
    const world = await begin();
    await world.give(["a"]);
    const copied = configMap(`${world.name}/copy`);
    const body = { ...copied, metadata: { ...copied.metadata, labels: { [partOfLabel]: world.setId } } };
    await cluster.raw("POST", `/api/v1/namespaces/${world.name}/configmaps`, { body });
    const found = await world.checkLater();
    expect(found.foreign).toEqual([expect.objectContaining({ member: false })]);
    await world.ask(accepted(found.foreign));
    expect(await world.checkLater()).toMatchObject({ phase: "Ready", objects: { foreign: 1 } });
    expect(await cluster.statusOf(world.path("copy"))).toBe(200);
  });

  test("a Namespace waits until it is empty, and no object of another owner is deleted with it", async () => {
    const world = await begin();
    const inner = `${world.name}-inner`;
    await world.give(["a"]);
    await world.restore(namespace(inner));
    await world.restore(configMap(`${inner}/old`));
    const theirs = configMap(`${inner}/theirs`);
    await cluster.raw("POST", `/api/v1/namespaces/${inner}/configmaps`, { body: theirs });
    const found = await world.reconcile();
    expect(found.foreign?.map(({ id }) => id.name)).toEqual(["old", inner]);
    expect((await world.checkLater()).foreign).toEqual(found.foreign);
    await world.ask(accepted(found.foreign));
    const waiting = await world.checkLater();
    expect(waiting).toMatchObject({ phase: "Applying", reason: "Pruning" });
    expect(waiting.problems[0]?.message).toContain("theirs");
    expect(await cluster.statusOf(`/api/v1/namespaces/${inner}`)).toBe(200);
    expect(await cluster.statusOf(`/api/v1/namespaces/${inner}/configmaps/old`)).toBe(404);
    expect(await cluster.statusOf(`/api/v1/namespaces/${inner}/configmaps/theirs`)).toBe(200);
  });

  test("unrecorded members delay the deletion of their Sync until somebody accepts them", async () => {
    const world = await begin();
    await world.give(["a"]);
    await world.restore(configMap(`${world.name}/old`));
    const found = await world.checkLater();
    await world.assignDelete(world.name);
    await world.work();
    const held = await world.checkLater();
    expect(held.phase).not.toBe("Gone");
    expect(await cluster.statusOf(world.path("old"))).toBe(200);
    expect(await cluster.statusOf(world.path("a"))).toBe(404);
    await world.ask(accepted(found.foreign));
    await world.checkLater();
    expect(await cluster.statusOf(world.path("old"))).toBe(404);
  });

  test("the check that deletes the accepted members ends the deletion of their Sync", async () => {
    const world = await begin();
    await world.assign(world.name, [configMap(`default/${world.name}`)]);
    await world.work();
    await world.restore(configMap(`default/${world.name}-old`));
    const found = await world.checkLater();
    await world.assignDelete(world.name);
    await world.work();
    expect(await world.observed()).toMatchObject({ phase: "Failed", reason: "UnrecordedMembers" });
    await world.ask(accepted(found.foreign));
    expect(await world.checkLater()).toMatchObject({ phase: "Gone", handledPrune: 1 });
    const parent = `/api/v1/namespaces/starling-system/configmaps/tests.${world.name}`;
    expect(await cluster.statusOf(parent)).toBe(404);
  });
});
