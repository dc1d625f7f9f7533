import { usageFailure } from "#cli/session/failure.ts";
import { findKind } from "#cli/session/kind-names.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";

/** A group, a Sync, or one template of a group. */
export interface OwnerArgument {
  readonly owner: Owner;
  readonly template?: string;
}

/** `GROUP`, `syncgroup/GROUP`, `sync/NAME`, or `sync/GROUP.TEMPLATE`. */
export function ownerArgument(text: string, namespace: string): OwnerArgument {
  const [first = "", name = first, ...more] = text.split("/");
  const kind = text.includes("/") ? findKind(first) : "SyncGroup";
  if (more.length > 0 || name === "" || (kind !== "SyncGroup" && kind !== "Sync")) {
    const next = "starling get syncgroups";
    throw usageFailure(`"${text}" has no renderings; expected GROUP, sync/NAME or sync/GROUP.TEMPLATE`, next);
  }
  const [group = "", ...template] = name.split(".");
  if (kind === "Sync" && template.length > 0)
    return { owner: { namespace, kind: "SyncGroup", name: group }, template: template.join(".") };
  return { owner: { namespace, kind, name } };
}
