/** Names the Sync that an object belongs to: the cluster only has the id of its set, which is a digest. */
import type { OperationResult } from "#functions/apply/steps/operation.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";

const owner = /applyset \((applyset-[\w-]+-v1)\)/g;

/**
 * The result of an operation, with the names of the cluster's Syncs instead of set ids; ids of other installations
 * stay.
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
