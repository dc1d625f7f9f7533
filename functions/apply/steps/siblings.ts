/** The other Syncs of one owner on a cluster: an object that moves from one to another is never deleted on the way. */
import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { OperationResult, SiblingSyncs } from "#functions/apply/steps/operation.ts";
import { placesIn } from "#functions/apply/steps/rendering-places.ts";
import { loadRendering } from "#functions/apply/steps/sync-blobs.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { everyObject } from "#shared/source/rendering.ts";

/** `objectIdKey` of every place where an object of a rendering may be. */
type Places = ReadonlySet<string>;

/** A sibling, and the objects that its assignment desires. */
interface Sibling {
  readonly setId: string;
  readonly desired: Places;
}

/**
 * Answers questions about siblings, and asks only where it matters: about objects that would be pruned or deleted, and
 * about objects with the mark of another set. Each question reads the rows of the cluster again, because the planner
 * assigns meanwhile. A row or a rendering that cannot be read is an error, and then nothing is deleted. A rendering
 * never changes, so one operation reads each of them once, one after the other, however many objects it asks about.
 */
export class Siblings implements SiblingSyncs {
  readonly #row: SyncRow;
  readonly #ports: Pick<WorkerPorts, "table" | "blobs">;
  /** By digest of the rendering and default Namespace. */
  readonly #places = new Map<string, Places>();
  /** Settles when the read before has ended, well or not. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(row: SyncRow, ports: Pick<WorkerPorts, "table" | "blobs">) {
    this.#row = row;
    this.#ports = ports;
  }

  /** @throws StarlingError `RenderingLost`, `NewerRow`, and the errors of the table and the store. */
  async #desiring(ids: readonly ObjectId[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map();
    const siblings = await this.#read();
    const found = ids.flatMap((id) => {
      const key = objectIdKey(id);
      const sibling = siblings.find(({ desired }) => desired.has(key));
      return sibling === undefined ? [] : [[key, sibling.setId] as const];
    });
    return new Map(found);
  }

  /** When a sibling cannot be read, nothing may be deleted. */
  async desiringOrWhy(ids: readonly ObjectId[]): Promise<ReadonlyMap<string, string> | Withheld> {
    try {
      return await this.#desiring(ids);
    } catch (error) {
      if (!(error instanceof StarlingError)) throw error;
      const message = `the desired state of the other Syncs of its owner cannot be read: ${error.message}`;
      return { reason: "Unreadable", message };
    }
  }

  /**
   * Whether an object with the mark of another set may be taken over: `lacks` when the sibling does not desire the
   * object any more, `desires` when it does; undefined when no sibling has that set.
   * @throws StarlingError as the reads do.
   */
  async standingOf(setId: string, id: ObjectId): Promise<"desires" | "lacks" | undefined> {
    const sibling = (await this.#read()).find((one) => one.setId === setId);
    if (sibling === undefined) return undefined;
    return sibling.desired.has(objectIdKey(id)) ? "desires" : "lacks";
  }

  async #read(): Promise<readonly Sibling[]> {
    const { cluster, namespace, name, owner } = this.#row;
    const range = ranges.syncsOn(cluster, namespace);
    const rows = await Array.fromAsync(allItems((start) => this.#ports.table.query({ ...range, ...start })));
    const others = rows.filter(
      (row) => row.name !== name && row.owner.kind === owner.kind && row.owner.name === owner.name,
    );
    return Promise.all(others.map((row) => this.#siblingOf(row)));
  }

  async #siblingOf(row: SyncRow): Promise<Sibling> {
    const { action, renderDigest, apply } = row.desired;
    const setId = setIdOf({ syncNamespace: row.namespace, syncName: row.name });
    if (action !== "apply" || renderDigest === undefined) return { setId, desired: new Set() };
    const reading = this.#last.then(() => this.#placesOf(renderDigest, apply.defaultNamespace));
    this.#last = reading.catch(() => undefined);
    return { setId, desired: await reading };
  }

  async #placesOf(renderDigest: string, defaultNamespace: string | undefined): Promise<Places> {
    const key = `${renderDigest} ${defaultNamespace ?? ""}`;
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const rendering = await loadRendering(renderDigest, this.#ports.blobs);
    const places = placesIn(everyObject(rendering), defaultNamespace);
    this.#places.set(key, places);
    return places;
  }
}

const owner = /applyset \((applyset-[\w-]+-v1)\)/g;

/**
 * The result of an operation, with the names of the cluster's Syncs instead of set ids, which are digests; ids of other
 * installations stay.
 */
export function nameOwners(result: OperationResult, syncs: readonly SyncRow[]): OperationResult {
  const texts = [result.message, ...(result.problems ?? []).map(({ message }) => message)];
  if (!texts.some((text) => text.includes("(applyset-"))) return result;
  const names = new Map(
    syncs.map((row) => [setIdOf({ syncNamespace: row.namespace, syncName: row.name }), nameOf(row)]),
  );
  const named = (text: string) => text.replaceAll(owner, (whole, id: string) => names.get(id) ?? whole);
  const { problems } = result;
  return {
    ...result,
    message: named(result.message),
    ...(problems === undefined
      ? {}
      : { problems: problems.map((each) => ({ ...each, message: named(each.message) })) }),
  };
}

function nameOf({ namespace, name, owner }: SyncRow): string {
  const group = owner.kind === "SyncGroup" ? ` of SyncGroup ${owner.name}` : "";
  return `Sync ${namespace}/${name}${group}`;
}
