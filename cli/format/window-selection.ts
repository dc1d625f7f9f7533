import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { groupsText } from "#shared/fleet/kinds/group-selection.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";

/** The clusters and the groups that it selects. */
export function windowSelectionText({ clusters, groups }: Pick<WindowSpec, "clusters" | "groups">): string {
  const parts = [clusters && selectionText(clusters), groups && `groups ${groupsText(groups)}`];
  return parts.filter((part) => part !== undefined).join("; ");
}
