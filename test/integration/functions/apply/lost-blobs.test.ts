/** Blobs are lost, changed or denied: a worker recovers with the objects that are in the cluster. */
import { randomUUID } from "node:crypto";
import { DeleteObjectCommand, GetObjectCommand, NoSuchKey, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clientWith } from "#test/support/client-with.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const Bucket = "blobs";
const rbac = "rbac.authorization.k8s.io";
let emulated: EmulatedClients;
let s3: S3Client;
beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 5 });
  s3 = emulated.aws.s3;
  await createBucket(s3, Bucket);
});
afterAll(() => emulated.stop());

const store = () => new S3BlobStore(s3, Bucket);
const remove = (Key: string) => s3.send(new DeleteObjectCommand({ Bucket, Key }));
const isThere = (Key: string) =>
  s3.send(new GetObjectCommand({ Bucket, Key })).then(
    () => true,
    (error: unknown) => {
      if (error instanceof NoSuchKey) return false;
      throw error;
    },
  );

/** A client that may list only within a namespace. */
function withinNamespaces(client: ClusterClient): ClusterClient {
  return clientWith(client, {
    async list(kind, query) {
      if (query.namespace) return client.list(kind, query);
      const message = `cannot list ${kind.plural} at the cluster scope`;
      const request = { method: "GET", path: `/api/v1/${kind.plural}`, secret: false };
      throw new KubeError(request, { status: 403, reason: "Forbidden", message, causes: [] });
    },
  });
}

/** Objects of `kinds` kinds that have no namespace. */
function clusterScoped(name: string, kinds: number): readonly ManifestObject[] {
  const roleRef = { apiGroup: rbac, kind: "ClusterRole", name: "view" };
  const all = [
    { apiVersion: `${rbac}/v1`, kind: "ClusterRole", rules: [] },
    { apiVersion: `${rbac}/v1`, kind: "ClusterRoleBinding", roleRef },
    { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", value: 1 },
  ];
  return all.slice(0, kinds).map((object) => manifest({ ...object, metadata: { name } }));
}

/** Longer than the interval of a check with any jitter. */
const intervalMs = 700_000;

describe.each(clusterTargets)("a worker whose blobs are lost, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  /** A world with a namespace and a Sync of the same name, which has ConfigMaps. */
  class LostWorld extends WorkerWorld {
    readonly name = `lost-${randomUUID().slice(0, 8)}`;

    objects(...names: readonly string[]): readonly ManifestObject[] {
      return [namespace(this.name), ...names.map((name) => configMap(`${this.name}/${name}`))];
    }

    async give(names: readonly string[], apply: Partial<SyncRow["desired"]["apply"]> = {}): Promise<void> {
      await this.assign(this.name, this.objects(...names), apply);
    }

    /** Checks in a new sandbox, which has read nothing. */
    async check(): Promise<Observed> {
      await this.work({ blobs: store() });
      return this.observed();
    }

    async checkLater(): Promise<Observed> {
      this.aheadMs += intervalMs;
      return this.check();
    }

    observed(): Promise<Observed> {
      return this.observedOf(this.name);
    }

    async inventoryKey(): Promise<string> {
      return blobKeys.inventory("c1", (await this.observed()).inventory ?? "none");
    }

    path(name: string): string {
      return `/api/v1/namespaces/${this.name}/configmaps/${name}`;
    }

    /** `name uid` of every ConfigMap of the set in the cluster. */
    async members(): Promise<readonly string[]> {
      const list = await cluster.raw("GET", `/api/v1/namespaces/${this.name}/configmaps`);
      return (list.items as ManifestObject[])
        .filter(({ metadata }) => metadata.name !== "kube-root-ca.crt")
        .map((item) => `${item.metadata.name} ${stringAt(item, "metadata", "uid")}`)
        .sort();
    }

    async names(): Promise<readonly string[]> {
      return (await this.members()).map((member) => member.split(" ")[0] ?? "");
    }
  }

  function begin(): Promise<LostWorld> {
    return new LostWorld({ connect: async () => cluster.client, distrust() {} }, store()).begin();
  }

  describe("a lost inventory", () => {
    test("a lost inventory is rebuilt from the members and reported once; nothing is made again, deleted or forgotten", async () => {
      const world = await begin();
      await world.give(["a", "b"]);
      expect((await world.check()).phase).toBe("Ready");
      const before = await world.members();
      const lost = await world.inventoryKey();
      await remove(lost);

      const found = await world.checkLater();
      expect(found).toMatchObject({ phase: "Ready", rebuilt: { reason: "BlobNotFound", members: 3, foreign: 0 } });
      expect(await world.members()).toEqual(before);
      expect(await isThere(await world.inventoryKey())).toBe(true);

      expect((await world.checkLater()).rebuilt).toEqual(found.rebuilt);
      await world.give(["a"]);
      expect(await world.check()).toMatchObject({ phase: "Ready", rebuilt: found.rebuilt });
      expect(await world.members()).toEqual(before.filter((member) => member.startsWith("a ")));
    });

    test.each([
      [0, "; Namespace may not be listed"],
      [2, `; ClusterRole.${rbac}, ClusterRoleBinding.${rbac}, Namespace may not be listed`],
      [3, `; ClusterRole.${rbac}, ClusterRoleBinding.${rbac}, Namespace and others may not be listed`],
    ])(
      "a lost inventory is rebuilt without %i cluster-wide kinds if the worker may list only the Sync's namespaces",
      async (kinds, ending) => {
        const client = withinNamespaces(cluster.client);
        const world = await new LostWorld({ connect: async () => client, distrust() {} }, store()).begin();
        await world.assign(world.name, [...world.objects("a", "b"), ...clusterScoped(world.name, kinds)]);
        await world.check();
        const before = await world.members();
        await remove(await world.inventoryKey());
        const found = await world.checkLater();
        expect(found).toMatchObject({ rebuilt: { reason: "BlobNotFound", members: 2, foreign: 0 } });
        expect(found.rebuilt?.message.endsWith(ending), found.rebuilt?.message).toBe(true);
        expect(await world.members()).toEqual(before);
      },
    );

    test("an inventory that is lost while a revision removes an object is rebuilt with it, and the object is deleted", async () => {
      const world = await begin();
      await world.give(["a", "b"]);
      await world.check();
      const [kept] = await world.members();
      await remove(await world.inventoryKey());
      await world.give(["a"]);
      expect(await world.check()).toMatchObject({ phase: "Ready", rebuilt: { members: 3 } });
      expect(await world.members()).toEqual([kept]);
    });

    test("a member that no rendering accounts for is named, and is not deleted", async () => {
      const world = await begin();
      await world.give(["a", "old"], { prune: false });
      await world.check();
      await world.give(["a"], { prune: false });
      await world.check();
      const before = await world.members();
      await remove(await world.inventoryKey());
      await world.give(["a", "new"]);
      const found = await world.check();
      expect(found).toMatchObject({ phase: "Ready", rebuilt: { members: 2, foreign: 1 }, objects: { foreign: 1 } });
      expect(found.foreign).toEqual([
        {
          id: { group: "", kind: "ConfigMap", namespace: world.name, name: "old" },
          uid: before.find((member) => member.startsWith("old "))?.slice("old ".length),
          member: true,
        },
      ]);
      expect(await world.names()).toEqual(["a", "new", "old"]);
      expect((await world.checkLater()).foreign).toEqual(found.foreign);
    });

    test("an inventory whose bytes were changed counts as lost, and is reported", async () => {
      const world = await begin();
      await world.give(["a", "b"]);
      await world.check();
      const before = await world.members();
      const Key = await world.inventoryKey();
      await s3.send(new PutObjectCommand({ Bucket, Key, Body: '{"schema":1,"entries":[]}' }));
      expect(await world.checkLater()).toMatchObject({
        phase: "Ready",
        rebuilt: { reason: "BlobCorrupt", members: 3 },
      });
      expect(await world.members()).toEqual(before);
      const again = await world.checkLater();
      expect(again.phase).toBe("Ready");
      await world.give([]);
      expect(await world.check()).toMatchObject({ phase: "Ready" });
      expect(await world.names()).toEqual([]);
    });

    test("an inventory that is lost while drift is only reported causes no write, and missing objects are reported", async () => {
      const world = await begin();
      await world.give(["a", "b"], { drift: "report" });
      await world.check();
      await cluster.raw("PATCH", world.path("a"), { body: { data: { k: "2" } }, as: "merge-patch" });
      await cluster.raw("DELETE", world.path("b"));
      const version = stringAt(await cluster.raw("GET", world.path("a")), "metadata", "resourceVersion");
      await remove(await world.inventoryKey());
      const found = await world.checkLater();
      expect(found.rebuilt).toMatchObject({ members: 2, foreign: 0 });
      expect(found.drift).toMatchObject({ objects: 1, corrected: false });
      expect(stringAt(await cluster.raw("GET", world.path("a")), "metadata", "resourceVersion")).toBe(version);
      expect(await world.names()).toEqual(["a"]);
    });

    test("a lost inventory is rebuilt with a missing object, which is made again", async () => {
      const world = await begin();
      await world.give(["a", "b"]);
      await world.check();
      await cluster.raw("DELETE", world.path("b"));
      await remove(await world.inventoryKey());
      expect(await world.checkLater()).toMatchObject({ phase: "Ready", rebuilt: { members: 2, foreign: 0 } });
      expect(await world.names()).toEqual(["a", "b"]);
    });

    test("a lost inventory does not make a Job run again that removed itself", async () => {
      const world = await begin();
      const job = manifest({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "once", namespace: world.name },
        spec: {
          ttlSecondsAfterFinished: 0,
          template: { spec: { restartPolicy: "Never", containers: [{ name: "once", image: "once:1" }] } },
        },
      });
      await world.assign(world.name, [...world.objects("a"), job]);
      await world.check();
      const path = `/apis/batch/v1/namespaces/${world.name}/jobs/once`;
      await cluster.raw("DELETE", `${path}?propagationPolicy=Background`);
      expect(await world.checkLater()).toMatchObject({ phase: "Ready" });
      await remove(await world.inventoryKey());
      expect(await world.checkLater()).toMatchObject({ phase: "Ready", rebuilt: { reason: "BlobNotFound" } });
      expect(await cluster.statusOf(path)).toBe(404);
    });

    test("the deletion of a Sync without an inventory takes the proven members, and waits for the others by name", async () => {
      const world = await begin();
      await world.give(["a", "old"], { prune: false });
      await world.check();
      await world.give(["a"], { prune: false });
      await world.check();
      await remove(await world.inventoryKey());
      await world.assignDelete(world.name);
      await world.check();
      world.aheadMs += intervalMs;
      const found = await world.check();
      expect(found.phase).not.toBe("Gone");
      expect(found.foreign?.map(({ id }) => id.name)).toEqual(["old"]);
      expect(await world.names()).toEqual(["old"]);
    });
  });

  test("an object that left the Sync and is marked as never to be deleted does not delay the Sync's deletion", async () => {
    const world = await begin();
    const metadata = { name: "kept", namespace: world.name, annotations: { "starling.dev/prune": "disabled" } };
    const kept = manifest({ apiVersion: "v1", kind: "ConfigMap", metadata });
    await world.assign(world.name, [...world.objects("a"), kept]);
    await world.check();
    await world.give(["a"]);
    await world.check();
    const keep = "it is marked starling.dev/prune: disabled";
    expect((await world.checkLater()).foreign).toEqual([expect.objectContaining({ member: true, keep })]);
    await world.assignDelete(world.name);
    expect(await world.check()).not.toMatchObject({ reason: "UnrecordedMembers" });
    expect(await world.names()).toEqual(["kept"]);
  });

  describe("a lost rendering", () => {
    test("a lost rendering that was never finished proves nothing: its objects are named, and delay no deletion", async () => {
      const world = await begin();
      await world.give(["a"]);
      await world.check();
      await world.give(["a", "left"]);
      await dieAfterApply(world);
      expect(await world.names()).toEqual(["a", "left"]);
      await remove(blobKeys.rendering(encodeRendering(world.objects("a", "left")).digest));

      world.aheadMs += 400_000;
      await world.give(["a", "next"]);
      const found = await world.check();
      expect(found).toMatchObject({ phase: "Ready", objects: { foreign: 1 } });
      expect(found.foreign?.map(({ id, member }) => [id.name, member])).toEqual([["left", true]]);
      expect(await world.names()).toEqual(["a", "left", "next"]);
    });

    test.each(["gone", "changed"])(
      "a rendering that is %s is requested by its digest, and applied when it exists again",
      async (how) => {
        const world = await begin();
        await world.give(["a"]);
        const { digest, bytes } = encodeRendering(world.objects("a"));
        const Key = blobKeys.rendering(digest);
        if (how === "gone") await remove(Key);
        else await s3.send(new PutObjectCommand({ Bucket, Key, Body: "[]" }));
        const found = await world.check();
        expect(found).toMatchObject({ phase: "Retrying", reason: "RenderingLost" });
        expect(found.message).toContain(digest);
        expect(await cluster.statusOf(world.path("a"))).toBe(404);
        expect(world.sender.take()).toContainEqual(expect.objectContaining({ to: "report" }));

        await store().overwrite(Key, bytes);
        expect((await world.checkLater()).phase).toBe("Ready");
      },
    );
  });

  test("a denied blob is not a lost one: it is reported with bucket and key, and work goes on when access returns", async () => {
    const world = await begin();
    await world.give(["a", "b"]);
    await world.check();
    const before = await world.members();
    await world.give(["a"]);
    const lifted = emulated.proxy.intercept({ before: ({ service }) => (service === "s3" ? "denied" : undefined) });
    const found = await world.check().finally(lifted);
    expect(found).toMatchObject({ phase: "Retrying", reason: "BlobDenied" });
    expect(found.message).toMatch(/inventories\/.* in the bucket blobs .*s3:ListBucket/);
    expect(await world.members()).toEqual(before);
    const after = await world.checkLater();
    expect(after.phase).toBe("Ready");
    expect(after).not.toHaveProperty("rebuilt");
    expect(await world.names()).toEqual(["a"]);
  });

  /** The worker of this assignment dies before it writes its outcome. */
  async function dieAfterApply(world: LostWorld): Promise<void> {
    const table = new Proxy(world.table, {
      get(inner, name) {
        if (name === "write") return () => Promise.reject(new Error("the worker is dead"));
        const member: unknown = Reflect.get(inner, name);
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });
    await expect(world.work({ table, blobs: store() })).rejects.toThrow("the worker is dead");
  }
});
