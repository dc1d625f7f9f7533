import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/** A check of the way to a cluster: asked for by people, answered by the function that goes this way. */
export interface CheckRow extends Row {
  readonly type: "Check";
  readonly asked: { readonly id: string; readonly at: string; readonly by: string };
  /** Of this request or one before it: the id says. */
  readonly answer?: ClusterCheck;
}
