import type { LabelSelector } from "#shared/fleet/kinds/cluster-selection.ts";

/** The clusters that an act is about: one, or those that a selector matches. Without both, every cluster. */
export interface NamedClusters {
  readonly cluster?: string;
  /** `text` is the selector as people wrote it. */
  readonly clusters?: { readonly text: string; readonly selector: LabelSelector };
}

/** Whether the act is about some clusters only. */
export function namesSome({ cluster, clusters }: NamedClusters): boolean {
  return (cluster ?? clusters) !== undefined;
}
