import { usageFailure } from "#cli/session/failure.ts";
import { findKind } from "#cli/session/kind-names.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";

/** A subject, or one template of a group. */
export interface SubjectArgument {
  readonly subject: Subject;
  readonly template?: string;
}

/** `GROUP`, `syncgroup/GROUP`, `sync/NAME`, or `sync/GROUP.TEMPLATE`. */
export function subjectArgument(text: string, namespace: string): SubjectArgument {
  const [first = "", name = first, ...more] = text.split("/");
  const kind = text.includes("/") ? findKind(first) : "SyncGroup";
  if (more.length > 0 || name === "" || (kind !== "SyncGroup" && kind !== "Sync")) {
    const next = "starling get syncgroups";
    throw usageFailure(`"${text}" renders nothing; expected GROUP, sync/NAME or sync/GROUP.TEMPLATE`, next);
  }
  const [group = "", ...template] = name.split(".");
  if (kind === "Sync" && template.length > 0)
    return { subject: { namespace, kind: "SyncGroup", name: group }, template: template.join(".") };
  return { subject: { namespace, kind, name } };
}
