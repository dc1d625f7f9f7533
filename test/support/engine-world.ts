/**
 * The apply engine and a cluster at the start of a suite. Each set has the claim `claimFor` its name. An apply has a
 * minute of time, and the inventory is stored as a worker stores it.
 */

import { startClusterHost } from "@starling/embedded-apiserver";
import { systemClock } from "#shared/adapters/system.ts";
import { type ApplySetRequest, type ApplySetResult, applySet } from "#shared/kube/engine/apply-set.ts";
import type { PruneSetRequest } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, emptyInventory, type Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import { type SyncClaim, setIdOf } from "#shared/kube/parent-object.ts";
import {
  type ClusterFixture,
  claimFor,
  clusterFixture,
  endpointOf,
  type FixtureTarget,
  inSeconds,
} from "#test/support/cluster-fixture.ts";

export interface EngineWorld extends ClusterFixture {
  /** Applies a set without an earlier inventory, unless `rest` has one. */
  apply(set: string, objects: readonly ManifestObject[], rest?: Partial<ApplySetRequest>): Promise<ApplySetResult>;
  /** Applies a set completely. @returns its inventory. @throws Error when an object was not applied. */
  applied(set: string, objects: readonly ManifestObject[], before?: Inventory): Promise<Inventory>;
}

export function engineWorld(target: FixtureTarget): EngineWorld {
  const cluster = clusterFixture(target);
  const apply: EngineWorld["apply"] = (set, objects, rest) =>
    applySet(cluster.client, applyRequest(set, objects, rest));
  return {
    ...cluster,
    apply,
    async applied(set, objects, before = inventoryOf(set)) {
      const result = await apply(set, objects, { inventory: before });
      if (result.outcome !== "applied")
        throw new Error(`${set} is ${result.outcome}: ${JSON.stringify(result.objects)}`);
      return recorded(before, result);
    },
  };
}

/** The empty inventory of a new set. */
export function inventoryOf(set: string): Inventory {
  return emptyInventory(setIdOf(claimFor(set)));
}

/** The inventory that a worker stores after an apply. */
export function recorded(inventory: Inventory, result: ApplySetResult): Inventory {
  const entries = result.objects.flatMap((object) => ("entry" in object ? [object.entry] : []));
  return changeInventory(inventory, { recorded: entries, settled: [], definitions: result.definitions });
}

export function applyRequest(
  set: string,
  objects: readonly ManifestObject[],
  rest: Partial<ApplySetRequest> = {},
): ApplySetRequest {
  const inventory = inventoryOf(set);
  return { objects, setId: inventory.setId, inventory, clock: systemClock, deadline: inSeconds(60), ...rest };
}

/** A request that deletes the objects of the inventory outside `keep`. */
export function pruneRequest(
  { claim, inventory }: { readonly claim: SyncClaim; readonly inventory: Inventory },
  keep: readonly ManifestObject[],
  rest: Partial<PruneSetRequest> = {},
): PruneSetRequest {
  const kept = new Set(keep.map((object) => objectIdKey(objectIdOf(object))));
  const staying = inventory.entries.filter(({ id }) => kept.has(objectIdKey(id)));
  return {
    setId: inventory.setId,
    candidates: inventory.entries.filter(({ id }) => !kept.has(objectIdKey(id))),
    unrecorded: [],
    keepUids: new Set(staying.map(({ uid }) => uid)),
    claim,
    clock: systemClock,
    deadline: inSeconds(60),
    ...rest,
  };
}

/** A world with an embedded cluster whose faults a test sets. */
export async function faultyEngineWorld() {
  const host = await startClusterHost({ controllers: "off" });
  host.addCluster("c1");
  const world = engineWorld({ endpoint: endpointOf(await host.openPort("c1")), stop: () => host.stop() });
  return { ...world, setFaults: (faults: Parameters<typeof host.setFaults>[1]) => host.setFaults("c1", faults) };
}
