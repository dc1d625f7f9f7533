/** Windows on the pages: whether each is open, when that changes, and what waits for it. */
import type { WindowObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { groupsText } from "#shared/fleet/kinds/group-selection.ts";
import { openingText } from "#shared/fleet/windows/opening-text.ts";
import { type Ask, unlessNone } from "#shared/pages/ask.ts";
import { readPages } from "#shared/pages/read-pages.ts";
import { badge, brief, type Child, type Column, count, type Host, type Html, html, table } from "#shared/pages/view.ts";
import { formatAge } from "#shared/words/age.ts";

export type ListedWindow = WindowObject | UnreadableObject<"Window">;

/** Clusters of a group that wait for a window. */
export interface WaitsForWindow {
  readonly window: string;
  readonly clusters: number;
  /** The group, as a part of the page. */
  readonly who: Child;
}

/** Further Windows are not read. */
const mostPages = 2;

/** All Windows, without a read of the clusters that they select. An API of an earlier version has none. */
export async function readWindows(ask: Ask): Promise<readonly ListedWindow[]> {
  const list = { path: "/v1/windows", query: { count: "false" }, mostPages };
  return (await unlessNone(readPages<ListedWindow>(ask, list)))?.items ?? [];
}

/** @returns nothing where there is no Window. */
export function windowParts(
  windows: readonly ListedWindow[],
  { waits, host }: { readonly waits?: readonly WaitsForWindow[]; readonly host: Host },
): Html {
  if (windows.length === 0) return html``;
  const rows = windows
    .toSorted((a, b) => rank(a) - rank(b) || a.metadata.name.localeCompare(b.metadata.name, "en", { numeric: true }))
    .map((window): Child[] => {
      const { name } = window.metadata;
      if (isUnreadable(window)) return [badge("Unreadable"), name, "", "", ...(waits === undefined ? [] : [""])];
      const { spec } = window;
      const groups = spec.groups === undefined ? "" : ` of groups ${groupsText(spec.groups)}`;
      // Clusters wait for all windows over them as one, and an open one of these closes nothing.
      const isCause = ({ window: over }: WaitsForWindow) => !window.status.open && over.split(", ").includes(name);
      const own = waits?.filter(isCause);
      return [
        stateOf(window),
        name,
        brief(`${selectionText(spec.clusters ?? { all: true })}${groups}`),
        changeOf(window, host),
        ...(own === undefined
          ? []
          : [
              own.map(
                ({ clusters, who }, at) =>
                  html`${at === 0 ? "" : ", "}${who} ${count(clusters)} ${clusters === 1 ? "cluster" : "clusters"}`,
              ),
            ]),
      ];
    });
  const columns: readonly Column[] = [
    "State",
    "Window",
    ["Clusters", "text"],
    ["Next change", "text"],
    ...(waits === undefined ? [] : [["Waits for it", "text"] as const]),
  ];
  return html`<h2>Windows</h2>
${table("Windows, the closed ones first", columns, rows)}`;
}

function rank(window: ListedWindow): number {
  if (isUnreadable(window)) return 0;
  return window.status.open ? 2 : 1;
}

function stateOf({ status: { open, nextOpening } }: WindowObject): Html {
  if (open) return html`<span class="state good">open</span>`;
  return html`<span class="state ${nextOpening === undefined ? "bad" : "busy"}">closed</span>`;
}

function changeOf({ spec, status: { open, nextOpening, nextClosing } }: WindowObject, host: Host): Child {
  const at = nextOpening ?? nextClosing;
  if (at === undefined) return open ? "stays open" : "never opens again";
  return html`${open ? "closes" : "opens"} in ${formatAge(host.now.toISOString(), new Date(at))}: ${openingText(spec, new Date(at))}`;
}
