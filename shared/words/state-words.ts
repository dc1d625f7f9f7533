/** The words of STATE columns, worst first, which is the order of lists. */
const ranked = [
  "Failed",
  "Halted",
  "Stalled",
  "Unreadable",
  "Unreachable",
  "NotReady",
  "Reachable",
  "Retrying",
  "ClusterNotFound",
  "Degraded",
  "OutOfSync",
  "Drifted",
  "NoClusters",
  "Frozen",
  "Cordoned",
  "Suspended",
  "Held",
  "Guarded",
  "Deleting",
  "Behind",
  "Waiting",
  "RollingBack",
  "Rolling",
  "Reconciling",
  "Rendering",
  "Applying",
  "Verifying",
  "Assigned",
  "Pending",
  "Unknown",
  "Rejected",
  "RolledBack",
  "Superseded",
  "Skipped",
  "Orphaned",
  "Gone",
  "Unchanged",
  "Succeeded",
  "Complete",
  "Ready",
] as const;

export type StateWord = (typeof ranked)[number];

const bad = new Set([
  "Failed",
  "Halted",
  "Stalled",
  "Unreadable",
  "Unreachable",
  "NotReady",
  "ClusterNotFound",
  "Degraded",
]);
const good = new Set(["Unchanged", "Succeeded", "Complete", "Ready"]);

/** A smaller rank is worse. An unknown word has the rank of Unknown. */
export function stateRank(word: string): number {
  const rank = stateWords().indexOf(word);
  return rank === -1 ? ranked.indexOf("Unknown") : rank;
}

/** Nothing is left to do. */
export function isGood(word: string): boolean {
  return good.has(word);
}

/** A rollout goes on, forwards or back: nothing is settled. */
export function isUnderWay(word: string): boolean {
  return word === "Rolling" || word === "RollingBack";
}

/** The cluster has the desired revision, even if someone changed objects in the cluster since. */
export function hasDesired(word: string): boolean {
  return isGood(word) || word === "Drifted";
}

/** A user has to act. */
export function needsSomebody(word: string): boolean {
  return bad.has(word);
}

/** The word in its correct spelling, or undefined. */
export function findState(text: string): string | undefined {
  return ranked.find((word) => word.toLowerCase() === text.toLowerCase());
}

export function stateWords(): readonly string[] {
  return ranked;
}
