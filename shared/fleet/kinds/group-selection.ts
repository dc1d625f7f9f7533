import * as z from "zod";
import { boundedList } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { labelSelector, matchesSelector, selectionText } from "#shared/fleet/kinds/cluster-selection.ts";

/** A label replaces a longer list. */
const most = 1000;

const selector = labelSelector("is empty and would match every group; leave groups out if that is meant");
const groupName = z
  .string()
  .max(127)
  .regex(/^[a-z0-9-]+\/[a-z0-9-]+$/, "must be the namespace and the name of a group, such as payments/shop");

/** Selects SyncGroups, and Syncs that people wrote, in any namespace. */
export const groupSelectionSchema = z
  .strictObject({
    selector: selector.optional(),
    names: boundedList(groupName, most).min(1).optional(),
    namespaces: boundedList(nameSchema, most).min(1).optional(),
  })
  .refine(
    (selection) => Object.values(selection).filter((part) => part !== undefined).length === 1,
    "needs exactly one of selector, names or namespaces; leave groups out for every group",
  );
export type GroupSelection = z.infer<typeof groupSelectionSchema>;

export interface SelectableGroup {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function selectsGroup({ selector: labels, names, namespaces }: GroupSelection, group: SelectableGroup): boolean {
  if (names !== undefined) return names.includes(`${group.namespace}/${group.name}`);
  if (namespaces !== undefined) return namespaces.includes(group.namespace);
  return labels !== undefined && matchesSelector(labels, group.labels);
}

/** A selection of groups in words. */
export function groupsText({ namespaces, ...selection }: GroupSelection): string {
  return namespaces === undefined ? selectionText(selection) : namespaces.map((name) => `${name}/*`).join(", ");
}
