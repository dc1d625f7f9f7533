/** The objects of a Sync on its cluster, by its worker's records: the cluster is not asked. */

import { defined } from "#shared/base/defined.ts";
import type { ObjectProblem, Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Inventory, InventoryEntry } from "#shared/kube/inventory.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import type { Reason } from "#shared/kube/reasons.ts";

/**
 * - `NotReady`: the worker named the object, with the reason; also for an object that could not be applied;
 * - `Drifted`: it differs from what was applied, and stays so;
 * - `Unknown`: the cluster does not answer, or more objects are not ready than the row can name;
 * - `Ready`: it was ready when the cluster was last checked.
 */
export const objectHealths = ["NotReady", "Drifted", "Unknown", "Ready"] as const;
export type ObjectHealth = (typeof objectHealths)[number];

export interface SyncObjectItem {
  /** `Deployment shop/web`, as messages name it. */
  readonly object: string;
  readonly kind: string;
  /** Absent for the core group, and for an object that was never recorded; the next four fields likewise. */
  readonly group?: string;
  readonly version?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly health: ObjectHealth;
  readonly reason?: string;
  readonly message?: string;
  /** When the API server created it, as far as that was recorded. */
  readonly createdAt?: string;
  /** When this was observed. */
  readonly seenAt?: string;
  /** For a hook: it has run, and is not kept. */
  readonly hook?: true;
  /**
   * The last correction of its drift, until a check finds it as applied: the number of corrections, the fields, and who
   * undid them.
   */
  readonly corrected?: { readonly times: number; readonly fields: string; readonly by: string };
}

/** An object, and whose it is. */
export interface OwnedObject extends SyncObjectItem {
  readonly sync: { readonly namespace: string; readonly name: string; readonly group?: string };
  /** That was applied there; empty before the first. */
  readonly revision: string;
}

/** The worst first, then by kind, namespace and name. They have neither the data of a Secret nor a digest of it. */
export function heldObjects(row: SyncRow, inventory: Pick<Inventory, "entries">): readonly SyncObjectItem[] {
  const { observed } = row;
  const problems = byObject(observed?.problems);
  const drifted = byObject([...driftedOf(observed), ...(observed?.leftAlone ?? [])]);
  const recorded = inventory.entries.map((entry): SyncObjectItem => {
    const object = describeObject(entry.id);
    return { ...recordOf(entry, object), ...healthOf(row, problems.get(object), drifted.get(object)) };
  });
  const known = new Set(recorded.map(({ object }) => object));
  const others = [...problems.values()].filter(({ object }) => isObject(object) && !known.has(object));
  const never = others.map(({ object, reason, message }): SyncObjectItem => {
    const [kind = ""] = object.split(" ");
    return { object, kind, health: "NotReady", reason, message, ...defined({ seenAt: observed?.at }) };
  });
  return [...recorded, ...never].sort((a, b) => (objectPlace(a) < objectPlace(b) ? -1 : 1));
}

/** Text in whose order they are listed: a page goes on behind the place of its last. */
export function objectPlace({ health, kind, group = "", namespace = "", name, object }: SyncObjectItem): string {
  return `${objectHealths.indexOf(health)}/${kind}/${group}/${namespace}/${name ?? object}`;
}

/** Some problems are about a set of objects, or about none. */
function isObject(text: string): boolean {
  return /^[A-Z][A-Za-z0-9.-]* \S+$/.test(text);
}

function byObject(problems: readonly ObjectProblem[] = []): ReadonlyMap<string, ObjectProblem> {
  return new Map(problems.map((problem) => [problem.object, problem]));
}

/** The drift that the last comparing check found and did not correct. */
function driftedOf(observed: Observed | undefined): readonly ObjectProblem[] {
  const stays = observed?.conditions.some(({ type, status }) => type === "Drifted" && status === "True");
  return stays === true && observed?.drift?.corrected === false ? (observed.drift.named ?? []) : [];
}

function recordOf(entry: InventoryEntry, object: string) {
  const { id, version, uid, createdAt, hook, undone } = entry;
  const corrected = undone === undefined ? undefined : { times: undone.inAll, fields: undone.fields, by: undone.by };
  return {
    object,
    kind: id.kind,
    ...(id.group === "" ? {} : { group: id.group }),
    version,
    ...(id.namespace === "" ? {} : { namespace: id.namespace }),
    name: id.name,
    uid,
    ...defined({ createdAt, corrected }),
    ...(hook === undefined ? {} : { hook: true as const }),
  };
}

const notSeen = "NotSeen" satisfies Reason;
const notNamed = "NotNamed" satisfies Reason;
const notChecked = "NotChecked" satisfies Reason;

function healthOf(
  { desired, observed }: Pick<SyncRow, "desired" | "observed">,
  problem: ObjectProblem | undefined,
  drift: ObjectProblem | undefined,
): Pick<SyncObjectItem, "health" | "reason" | "message" | "seenAt"> {
  const seen = defined({ seenAt: observed?.at });
  if (problem !== undefined) return { health: "NotReady", reason: problem.reason, message: problem.message, ...seen };
  if (observed === undefined || isSilent(observed)) {
    return { health: "Unknown", reason: notSeen, message: "the cluster does not answer", ...seen };
  }
  if (drift !== undefined) return { health: "Drifted", reason: drift.reason, message: drift.message, ...seen };
  const { total, ready } = observed.objects;
  const unnamed = total - ready - observed.problems.length;
  if (observed.phase !== "Ready" && unnamed > 0) {
    if (desired.action === "apply" && observed.applied?.renderDigest !== desired.renderDigest) {
      const message = "its health was not checked again, because the new rendering is not applied completely";
      return { health: "Unknown", reason: notChecked, message, ...seen };
    }
    const message = `${unnamed} more of ${total} objects are not ready, and not named`;
    return { health: "Unknown", reason: notNamed, message, ...seen };
  }
  return { health: "Ready", ...seen };
}

function isSilent({ phase }: Observed): boolean {
  return phase === "Unreachable" || phase === "Reachable";
}
