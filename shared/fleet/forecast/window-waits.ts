/** Clusters whose changes would wait for windows, if they were assigned now. Pure. */
import { defined } from "#shared/base/defined.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { thawHold } from "#shared/fleet/rollout/holding.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { closedNames, type NamedWindow, windowsNamed } from "#shared/fleet/rows/windows-row.ts";
import { nextOpening } from "#shared/fleet/windows/calendar.ts";
import { openingText } from "#shared/fleet/windows/opening-text.ts";

export interface WindowWait {
  /** Names of the closed windows over the clusters. */
  readonly window: string;
  /** When they open; absent when they never open again. */
  readonly until?: string;
  /** The same for people, by the clock of each zone and in UTC. */
  readonly text: string;
  readonly clusters: readonly string[];
}

/** @param windows - those over the group. */
export function windowWaits(
  { windows, operations }: { readonly windows: readonly NamedWindow[]; readonly operations: Operations },
  clusters: readonly SelectableCluster[],
  now: Date,
): readonly WindowWait[] {
  const facts = { cordons: [], freezeState: { freezes: [], lifted: [] }, windows, row: { operations } };
  const held = Map.groupBy(clusters, (cluster) => thawHold(facts, cluster, now)?.name);
  return [...held].flatMap(([window, waiting]) => {
    if (window === undefined) return [];
    const calendar = windowsNamed(windows, window);
    const opening = nextOpening(calendar, now);
    const text = opening === undefined ? "which never opens again" : `until ${openingText(calendar, opening)}`;
    const until = opening?.toISOString();
    const closed = closedNames(windows, window, now);
    return [{ window: closed, ...defined({ until }), text, clusters: waiting.map(({ name }) => name) }];
  });
}
