/**
 * One row with the specs of all windows, so that the planner reads them at once. Each is an attribute of its own, which
 * the transaction that writes or deletes the Window sets or removes.
 */
import { type ClusterSelection, type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Calendar } from "#shared/fleet/windows/calendar.ts";

export interface WindowsRow extends Row {
  readonly type: "Windows";
}

/** A window, as the planner knows it. */
export interface NamedWindow extends Calendar {
  readonly name: string;
  readonly clusters: ClusterSelection;
}

const prefix = "window:";
/** No name of a window has it. */
const nameJoin = ", ";

/** Belongs into the transaction that writes the Window. */
export function windowUpdate(name: string, { clusters, allow, deny }: WindowSpec) {
  const spec = { clusters, allow, deny };
  return {
    update: keys.windowState,
    set: { type: "Windows", schema: rowSchema, [`${prefix}${name}`]: spec },
    add: { version: 1 },
  };
}

/** Belongs into the transaction that deletes the Window. */
export function windowRemoval(name: string) {
  return {
    update: keys.windowState,
    set: { type: "Windows", schema: rowSchema },
    remove: [`${prefix}${name}`],
    add: { version: 1 },
  };
}

/** Finds the windows among rows that were read with their key, in the order of their names. */
export function windowsAmong(rows: readonly Row[]): readonly NamedWindow[] {
  const row = rows.find((one) => keyText(one) === keyText(keys.windowState));
  const found = Object.entries(row ?? {}).flatMap(([attribute, spec]): readonly NamedWindow[] => {
    if (!attribute.startsWith(prefix)) return [];
    return [{ name: attribute.slice(prefix.length), ...(spec as Omit<NamedWindow, "name">) }];
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The windows over a cluster as one: their allowed times are a union, and so are their denied times. */
export function windowOver(
  windows: readonly NamedWindow[],
  cluster: SelectableCluster,
): (Calendar & { readonly name: string }) | undefined {
  const own = windows.filter(({ clusters }) => selects(clusters, cluster));
  return own.length === 0 ? undefined : { name: own.map(({ name }) => name).join(nameJoin), ...merged(own) };
}

/** The windows that a hold names, as one. */
export function windowsNamed(windows: readonly NamedWindow[], hold: string): Calendar {
  const names = hold.split(nameJoin);
  return merged(windows.filter(({ name }) => names.includes(name)));
}

function merged(windows: readonly NamedWindow[]): Calendar {
  return { allow: windows.flatMap(({ allow }) => allow), deny: windows.flatMap(({ deny }) => deny) };
}
