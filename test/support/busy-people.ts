/** The changes that people make to Starling's objects on a busy day. */
import assert from "node:assert/strict";
import { ApiAnswer } from "#local/machine/api-session.ts";
import type { SyncObject } from "#shared/fleet/api/objects.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { writtenRows } from "#test/support/written-rows.ts";

interface Said {
  /** The path of the object below its namespace. */
  readonly path: string;
  readonly document: unknown;
}

/** Applies a document and runs a command at the same moment. The two writers must not undo each other. */
export async function operate(world: World, verb: "suspend" | "resume", said: Said): Promise<void> {
  const { path, document } = said;
  const url = `/v1/namespaces/${namespace}/${path}`;
  const { metadata } = await world.session.call<SyncObject>("GET", url);
  const acknowledged = Promise.withResolvers<void>();
  const generation = (metadata.generation ?? 0) + 1;
  const isNext = (row: object) =>
    "uid" in row && row.uid === metadata.uid && "generation" in row && row.generation === generation;
  const held = Promise.withResolvers<void>();
  const stop = world.machine.proxy.intercept({
    async before({ service, request }) {
      const puts = service === "dynamodb" ? writtenRows(request) : [];
      if (!puts.some(isNext)) return;
      held.resolve();
      await acknowledged.promise;
    },
  });
  try {
    const applied = insist(world, () => world.apply(document));
    await Promise.race([held.promise, applied]);
    await insist(world, () => world.session.call("POST", `${url}/${verb}`, { reason: "somebody looks into it" }));
    acknowledged.resolve();
    await applied;
  } finally {
    acknowledged.resolve();
    stop();
  }
  const object = await world.session.call<SyncObject>("GET", url);
  assert.equal(object.operations?.suspended !== undefined, verb === "suspend", `${path}: ${verb} was acknowledged`);
  const { spec } = document as { readonly spec: unknown };
  assert.deepEqual(intervalsIn(object.spec), intervalsIn(spec), `${path}: the document was acknowledged`);
}

/** Repeats a call, because in bad weather other writers may win too often. */
export async function insist(world: World, call: () => Promise<unknown>): Promise<void> {
  await world.waitFor("it is acknowledged", async () => {
    try {
      await call();
      return true;
    } catch (error) {
      if (error instanceof ApiAnswer && error.status === 409) return false;
      throw error;
    }
  });
}

function intervalsIn(spec: unknown): readonly string[] {
  return JSON.stringify(spec).match(/"interval":"\w+"/g) ?? [];
}

export async function label(world: World, name: string, labels: Readonly<Record<string, string>>): Promise<void> {
  const { metadata, spec } = await world.cluster(name);
  await world.apply({
    apiVersion: ourApiVersion,
    kind: "Cluster",
    metadata: { name, labels: { ...metadata.labels, ...labels } },
    spec,
  });
}
