import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { ZoneCheck, ZoneNeeds } from "#shared/fleet/zone-services.ts";

/** A request of people for a check. */
export interface CheckRequest {
  readonly id: string;
  readonly at: string;
  readonly by: string;
}

/** A check of the connection to a cluster. People request it, and the function that uses the connection answers. */
export interface CheckRow extends Row {
  readonly type: "Check";
  readonly asked: CheckRequest;
  /** Answer to this request or to an earlier one; compare its id. */
  readonly answer?: ClusterCheck;
}

/** The same of the way from the workers of a zone to AWS. It is beside the row of the zone, in which its workers may write. */
export interface ZoneCheckRow extends Row {
  readonly type: "ZoneCheck";
  readonly asked: CheckRequest & { readonly needs: ZoneNeeds };
  readonly answer?: ZoneCheck;
}
