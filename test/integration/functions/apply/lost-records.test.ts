/**
 * Records of a worker are lost, in doubt or never stored. Its objects are still deleted from the cluster when git no
 * longer has them.
 */
import { randomUUID } from "node:crypto";
import { DeleteObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { labelsOf, type ManifestObject, valueAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const Bucket = "blobs";
/** Longer than the interval of a check with any jitter. */
const intervalMs = 700_000;
let emulated: EmulatedClients;
let s3: S3Client;
beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 5 });
  s3 = emulated.aws.s3;
  await createBucket(s3, Bucket);
});
afterAll(() => emulated.stop());

/** The store of a new sandbox, which has read nothing. */
const store = () => new S3BlobStore(s3, Bucket);
const remove = (Key: string) => s3.send(new DeleteObjectCommand({ Bucket, Key }));

/** Answers 404 for the blob of each key in `missing`, as often as `missing` says, although the blob exists. */
class ForgetfulStore extends S3BlobStore {
  readonly #missing: Map<string, number>;

  constructor(missing: ReadonlyMap<string, number>) {
    super(s3, Bucket);
    this.#missing = new Map(missing);
  }

  override async get(key: string): Promise<Uint8Array> {
    const left = this.#missing.get(key) ?? 0;
    if (left === 0) return super.get(key);
    this.#missing.set(key, left - 1);
    throw new StarlingError(`there is no blob ${key}`, { code: "BlobNotFound", retry: "permanent" });
  }
}

describe.each(clusterTargets)("records of a worker that are lost or in doubt, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  class LostRecordsWorld extends WorkerWorld {
    readonly name = `records-${randomUUID().slice(0, 8)}`;

    objects(...names: readonly string[]): readonly ManifestObject[] {
      return [namespace(this.name), ...names.map((name) => configMap(`${this.name}/${name}`))];
    }

    renderingKey(...names: readonly string[]): string {
      return blobKeys.rendering(encodeRendering(this.objects(...names)).digest);
    }

    async inventoryKey(): Promise<string> {
      return blobKeys.inventory("c1", (await this.observed()).inventory ?? "none");
    }

    async give(names: readonly string[], apply: Partial<SyncRow["desired"]["apply"]> = {}): Promise<Observed> {
      await this.assign(this.name, this.objects(...names), apply);
      return this.check();
    }

    async check(missing: ReadonlyMap<string, number> = new Map()): Promise<Observed> {
      await this.work({ blobs: new ForgetfulStore(missing) });
      return this.observed();
    }

    async checkLater(missing?: ReadonlyMap<string, number>): Promise<Observed> {
      this.aheadMs += intervalMs;
      return this.check(missing);
    }

    /** The worker applies these objects, and dies before it writes their record. */
    async dieAfter(names: readonly string[]): Promise<void> {
      await this.assign(this.name, this.objects(...names));
      const table = new Proxy(this.table, {
        get(inner, name) {
          if (name === "write") return () => Promise.reject(new Error("the worker is dead"));
          const member: unknown = Reflect.get(inner, name);
          return typeof member === "function" ? member.bind(inner) : member;
        },
      });
      await expect(this.work({ table, blobs: store() })).rejects.toThrow("the worker is dead");
      this.aheadMs += 400_000;
    }

    observed(): Promise<Observed> {
      return this.observedOf(this.name);
    }

    /** The names of the ConfigMaps in the namespace. */
    async names(): Promise<readonly string[]> {
      const list = await cluster.raw("GET", `/api/v1/namespaces/${this.name}/configmaps`);
      const names = (list.items as ManifestObject[]).map(({ metadata }) => metadata.name);
      return names.filter((name) => name !== "kube-root-ca.crt").sort();
    }
  }

  function begin(): Promise<LostRecordsWorld> {
    return new LostRecordsWorld({ connect: async () => cluster.client, distrust() {} }, store()).begin();
  }

  test.each(["correct", "report", "off"] as const)(
    "the worker whose inventory and rendering are lost, drift %s, waits for the rendering and rebuilds the inventory",
    async (drift) => {
      const world = await begin();
      await world.give(["a", "b"], { drift });
      await remove(await world.inventoryKey());
      await remove(world.renderingKey("a", "b"));
      expect(await world.checkLater()).toMatchObject({ phase: "Retrying", reason: "RenderingLost" });
      await store().overwrite(world.renderingKey("a", "b"), encodeRendering(world.objects("a", "b")).bytes);
      expect(await world.checkLater()).toMatchObject({ phase: "Ready", rebuilt: { members: 3, foreign: 0 } });
      await world.give(["a"], { drift });
      expect(await world.names()).toEqual(["a"]);
    },
  );

  test("the worker does not rebuild an inventory that is missing in only one read", async () => {
    const world = await begin();
    await world.give(["a", "old"], { prune: false });
    await world.give(["a"], { prune: false });
    const found = await world.checkLater(new Map([[await world.inventoryKey(), 1]]));
    expect(found.phase).toBe("Ready");
    expect(found).not.toHaveProperty("rebuilt");
    await world.give(["a"], { prune: true });
    expect(await world.names()).toEqual(["a"]);
  });

  test("the worker prunes the objects of an unfinished attempt when its rendering is found again", async () => {
    const world = await begin();
    await world.give(["a"]);
    await world.dieAfter(["a", "left"]);
    await world.assign(world.name, world.objects("a", "next"));
    const found = await world.check(new Map([[world.renderingKey("a", "left"), 2]]));
    expect(found).toMatchObject({ phase: "Ready", objects: { foreign: 1 } });
    expect(await world.names()).toEqual(["a", "left", "next"]);
    await world.give(["a", "last"]);
    expect(await world.names()).toEqual(["a", "last"]);
    expect((await world.observed()).applied).not.toHaveProperty("unsettled");
  });

  test("the worker prunes the objects of an unfinished attempt when pruning is enabled again", async () => {
    const world = await begin();
    await world.give(["a"]);
    await world.dieAfter(["a", "left"]);
    await world.give(["a"], { prune: false });
    await world.give(["a", "b"], { prune: false });
    expect(await world.names()).toEqual(["a", "b", "left"]);
    await world.give(["a"], { prune: true });
    expect(await world.names()).toEqual(["a"]);
    expect((await world.observed()).applied).not.toHaveProperty("unsettled");
  });

  test("the worker prunes the objects of an unfinished attempt beside others that were not pruned either", async () => {
    const world = await begin();
    await world.give(["a", "old"], { prune: false });
    await world.give(["a"], { prune: false });
    await world.dieAfter(["a", "old", "left"]);
    await world.give(["a"], { prune: false });
    await world.give(["a", "b"], { prune: false });
    expect(await world.names()).toEqual(["a", "b", "left", "old"]);
    await world.give(["a"], { prune: true });
    expect(await world.names()).toEqual(["a"]);
  });

  test("the worker delays a deletion only for members that nobody recorded, not for kept or merely labelled objects", async () => {
    const world = await begin();
    const named = (name: string) => `${world.name}-${name}`;
    const config = (name: string) => configMap(`default/${named(name)}`);
    const path = "/api/v1/namespaces/default/configmaps";
    const kept = { ...config("kept").metadata, annotations: { "starling.dev/prune": "disabled" } };
    const all = [config("a"), config("old"), { ...config("kept"), metadata: kept }];
    await world.assign(world.name, all, { prune: false });
    await world.check();
    const labels = labelsOf(await cluster.raw("GET", `${path}/${named("a")}`));
    const copy = { ...config("copy"), metadata: { name: named("copy"), labels } };
    await cluster.raw("POST", path, { body: copy });
    await world.assign(world.name, [config("a")], { prune: false });
    await world.check();
    await remove(await world.inventoryKey());
    const found = await world.checkLater();
    expect(found.foreign?.map(({ id, member }) => [id.name, member]).sort()).toEqual([
      [named("copy"), false],
      [named("kept"), true],
      [named("old"), true],
    ]);

    await world.assignDelete(world.name);
    const held = await world.check();
    expect(held).toMatchObject({ phase: "Failed", reason: "UnrecordedMembers" });
    expect(held.message).toMatch(new RegExp(`^ConfigMap default/${named("old")} carry the marks`));
    await cluster.raw("DELETE", `${path}/${named("old")}`);
    expect(await world.checkLater()).toMatchObject({ phase: "Gone", reason: "Deleted" });
    for (const name of ["kept", "copy"]) expect(await cluster.statusOf(`${path}/${named(name)}`)).toBe(200);
    expect(await cluster.statusOf(`${path}/${named("a")}`)).toBe(404);
  });

  test("the worker prunes an object that it restored, though the record of that could not be stored", async () => {
    const world = await begin();
    await world.give(["a", "b"]);
    await cluster.raw("DELETE", `/api/v1/namespaces/${world.name}/configmaps/b`);
    const lifted = emulated.proxy.intercept({
      before: ({ service, operation }) => (service === "s3" && operation === "PutObject" ? "denied" : undefined),
    });
    expect((await world.checkLater().finally(lifted)).phase).toBe("Retrying");
    expect(await world.names()).toEqual(["a", "b"]);
    await world.give(["a"]);
    expect(await world.names()).toEqual(["a"]);
  });

  test.each(["correct", "report"] as const)(
    "the worker names members that no rendering accounts for, with drift %s",
    async (drift) => {
      const world = await begin();
      const metadata = { name: "old", namespace: world.name };
      await world.assign(world.name, [...world.objects("a"), manifest({ apiVersion: "v1", kind: "Secret", metadata })]);
      await world.check();
      await world.give(["a"], { prune: false, drift });
      await remove(await world.inventoryKey());
      const found = await world.checkLater();
      expect(found).toMatchObject({ objects: { foreign: 1 }, rebuilt: { foreign: 1 } });
      expect(found.foreign?.map(({ id }) => `${id.kind} ${id.name}`)).toEqual(["Secret old"]);
    },
  );

  test("the worker whose record of a finished Job is lost leaves another tool's Job of that name alone", async () => {
    const world = await begin();
    const job = (parallelism: number, labels = {}) =>
      manifest({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "once", namespace: world.name, labels },
        spec: {
          parallelism,
          ttlSecondsAfterFinished: 100,
          template: { spec: { restartPolicy: "Never", containers: [{ name: "once", image: "once:1" }] } },
        },
      });
    const jobs = `/apis/batch/v1/namespaces/${world.name}/jobs`;
    await world.assign(world.name, [...world.objects("a"), job(1)]);
    await world.check();
    await cluster.raw("DELETE", `${jobs}/once?propagationPolicy=Background`);
    expect((await world.checkLater()).phase).toBe("Ready");
    await remove(await world.inventoryKey());
    expect(await world.checkLater()).toMatchObject({ phase: "Ready", rebuilt: { reason: "BlobNotFound" } });
    await cluster.raw("POST", jobs, { body: job(3, { "kustomize.toolkit.fluxcd.io/name": "apps" }) });

    await world.assign(world.name, [...world.objects("a"), job(2)]);
    const found = await world.check();
    expect(found.problems.map(({ reason }) => reason)).toEqual(["ForeignOwner"]);
    const live = await cluster.raw("GET", `${jobs}/once`);
    expect(valueAt(live, "spec", "parallelism")).toBe(3);
    expect(labelsOf(live)).not.toHaveProperty([partOfLabel]);
  });
});
