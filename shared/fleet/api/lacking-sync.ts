/** A Sync that a cluster should have and that was never assigned, as lists and trees show it. */
import { defined } from "#shared/base/defined.ts";
import type { LackingState } from "#shared/fleet/api/lacking.ts";
import { type SyncObject, userSyncObject } from "#shared/fleet/api/objects.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { syncName, templateOf } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";

/** @param lacking - for a group's Sync; a Sync that a user wrote shows its planner's status. */
export function lackingSyncObject(
  owner: OwnerRow,
  { cluster, name, lacking }: { readonly cluster: string; readonly name: string; readonly lacking: LackingState },
): SyncObject {
  if (owner.type === "Sync") return userSyncObject(owner, undefined);
  const { namespace } = owner;
  const group = { namespace, kind: owner.type, name: owner.name };
  const template = relationOf(owner).templates.find((one) => syncName(group, one.name) === name);
  if (template === undefined) throw new Error(`group ${owner.name} has no template of ${name}`);
  const { source, path, render, apply } = template;
  const { state, since } = lacking;
  const condition = { type: "Ready", status: "False", ...reasonIn(lacking), since } as const;
  return {
    apiVersion: ourApiVersion,
    kind: "Sync",
    // It has no row: these values tell every reader that compares them.
    metadata: { name, namespace, uid: "", resourceVersion: "0" },
    spec: { cluster, source, path, ...defined({ render }), apply },
    status: { group: owner.name, template: templateOf(group, name), state, conditions: [condition] },
  };
}

/** `RenderFailed: no YAML` is a reason and a message; a text without such a beginning has its state as its reason. */
function reasonIn({ state, reason }: LackingState): { readonly reason: string; readonly message: string } {
  const [, word, message] = /^([A-Z][A-Za-z]+): (.*)$/s.exec(reason) ?? [];
  return word === undefined || message === undefined ? { reason: state, message: reason } : { reason: word, message };
}
