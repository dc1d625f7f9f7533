/**
 * One row with the specs of all windows, so that the planner reads them at once. Each is an attribute of its own, which
 * the transaction that writes or deletes the Window sets or removes.
 */
import { defined } from "#shared/base/defined.ts";
import { type ClusterSelection, type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { type GroupSelection, type SelectableGroup, selectsGroup } from "#shared/fleet/kinds/group-selection.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { type Calendar, isOpen } from "#shared/fleet/windows/calendar.ts";

export interface WindowsRow extends Row {
  readonly type: "Windows";
}

/** A window, as the planner knows it. */
export interface NamedWindow extends Calendar {
  readonly name: string;
  /** Without them, every cluster. */
  readonly clusters?: ClusterSelection | undefined;
  /** Without them, every owner. */
  readonly groups?: GroupSelection | undefined;
}

const prefix = "window:";
/** No name of a window has it. */
const nameJoin = ", ";

/** Belongs into the transaction that writes the Window. */
export function windowUpdate(name: string, { clusters, groups, allow, deny }: WindowSpec) {
  const spec = { allow, deny, ...defined({ clusters, groups }) };
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

/** Finds the windows over an owner among rows that were read with their key, in the order of their names. */
export function windowsFor(owner: SelectableGroup, rows: readonly Row[]): readonly NamedWindow[] {
  return windowsAmong(rows).filter(({ groups }) => groups === undefined || selectsGroup(groups, owner));
}

/** Likewise, those over any owner. */
export function windowsAmong(rows: readonly Row[]): readonly NamedWindow[] {
  const row = rows.find((one) => keyText(one) === keyText(keys.windowState));
  const found = Object.entries(row ?? {}).flatMap(([attribute, spec]): readonly NamedWindow[] => {
    if (!attribute.startsWith(prefix)) return [];
    return [{ name: attribute.slice(prefix.length), ...(spec as Omit<NamedWindow, "name">) }];
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The clusters that a Window is about: with `groups` alone, every cluster. */
export function clustersOf({ clusters }: Pick<NamedWindow, "clusters">): ClusterSelection {
  return clusters ?? { all: true };
}

/** The windows over a cluster as one: their allowed times are a union, and so are their denied times. */
export function windowOver(
  windows: readonly NamedWindow[],
  cluster: SelectableCluster,
): (Calendar & { readonly name: string }) | undefined {
  const own = windows.filter((window) => selects(clustersOf(window), cluster));
  return own.length === 0 ? undefined : { name: own.map(({ name }) => name).join(nameJoin), ...merged(own) };
}

/** The windows that a hold names, as one. */
export function windowsNamed(windows: readonly NamedWindow[], hold: string): Calendar {
  const names = hold.split(nameJoin);
  return merged(windows.filter(({ name }) => names.includes(name)));
}

/**
 * The names of those windows of a hold that are closed, which is what its clusters wait for. When none is closed any
 * more, all of its names.
 */
export function closedNames(windows: readonly NamedWindow[], hold: string, now: Date): string {
  const names = hold.split(nameJoin);
  const closed = windows.filter((window) => names.includes(window.name) && !isOpen(window, now));
  return closed.length === 0 ? hold : closed.map(({ name }) => name).join(nameJoin);
}

function merged(windows: readonly NamedWindow[]): Calendar {
  return { allow: windows.flatMap(({ allow }) => allow), deny: windows.flatMap(({ deny }) => deny) };
}
