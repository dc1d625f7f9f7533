import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/** A check of the connection to a cluster. People request it, and the function that uses the connection answers. */
export interface CheckRow extends Row {
  readonly type: "Check";
  readonly asked: { readonly id: string; readonly at: string; readonly by: string };
  /** Answer to this request or to an earlier one; compare its id. */
  readonly answer?: ClusterCheck;
}
