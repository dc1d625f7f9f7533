import type { OperationContext } from "#functions/apply/steps/operation.ts";
import { defined } from "#shared/base/defined.ts";
import { ensureParent, type ParentReads, type ParentResult } from "#shared/kube/engine/ensure-parent.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";

interface Beginning {
  readonly reads?: ParentReads;
  readonly installing?: boolean;
}

/** Begins an attempt in the cluster; see `ensureParent`. */
export function claimParent(
  context: OperationContext,
  groupKinds: readonly GroupKind[],
  beginning: Beginning = {},
): Promise<ParentResult> {
  const { client, claim, clusterUid, row } = context;
  const applied = row.observed?.applied;
  const { keptThrough } = row.desired;
  const settledThrough = applied?.attempt ?? keptThrough;
  // The kinds of unrecorded members tell where to search for them.
  const foreign = (row.observed?.foreign ?? []).filter(({ member }) => member).map(({ id }) => id);
  return ensureParent(client, {
    claim,
    groupKinds: [...groupKinds, ...foreign],
    ...beginning,
    ...defined({ expectedClusterUid: clusterUid, keptThrough }),
    ...(settledThrough === undefined ? {} : { settledThrough, unsettled: applied?.unsettled }),
  });
}
