/** Which Sync it is that an object belongs to: in the cluster only the id of its set stands, which is a digest. */
import type { VerbResult } from "#functions/apply/steps/verb.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";

const owner = /applyset \((applyset-[\w-]+-v1)\)/g;

/** What a look came to, with the Syncs of the cluster by their names; sets of others stay as they are written there. */
export function nameOwners(result: VerbResult, syncs: readonly SyncRow[]): VerbResult {
  const texts = [result.message, ...(result.troubles ?? []).map(({ message }) => message)];
  if (!texts.some((text) => text.includes("(applyset-"))) return result;
  const names = new Map(
    syncs.map((row) => [setIdOf({ syncNamespace: row.namespace, syncName: row.name }), nameOf(row)]),
  );
  const named = (text: string) => text.replaceAll(owner, (whole, id: string) => names.get(id) ?? whole);
  const { troubles } = result;
  return {
    ...result,
    message: named(result.message),
    ...(troubles === undefined
      ? {}
      : { troubles: troubles.map((each) => ({ ...each, message: named(each.message) })) }),
  };
}

function nameOf({ namespace, name, subject }: SyncRow): string {
  const group = subject.kind === "SyncGroup" ? ` of SyncGroup ${subject.name}` : "";
  return `Sync ${namespace}/${name}${group}`;
}
