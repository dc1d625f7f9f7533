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
  // Of members that nobody recorded: where they are looked for is known by their kinds.
  const foreign = (row.observed?.foreign ?? []).filter(({ member }) => member).map(({ id }) => id);
  return ensureParent(client, {
    claim,
    groupKinds: [...groupKinds, ...foreign],
    ...beginning,
    ...defined({ expectedClusterUid: clusterUid, keptThrough }),
    ...(settledThrough === undefined ? {} : { settledThrough, unsettled: applied?.unsettled }),
  });
}
