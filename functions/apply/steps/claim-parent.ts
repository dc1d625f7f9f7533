import type { VerbContext } from "#functions/apply/steps/verb.ts";
import { defined } from "#shared/base/defined.ts";
import { ensureParent, type ParentResult } from "#shared/kube/engine/ensure-parent.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";

/** Begins an attempt in the cluster; see `ensureParent`. */
export function claimParent(context: VerbContext, groupKinds: readonly GroupKind[]): Promise<ParentResult> {
  const { client, claim, clusterUid, row } = context;
  const applied = row.observed?.applied;
  const settledThrough = applied?.attempt ?? row.desired.keptThrough;
  // Of members that nobody recorded: where they are looked for is known by their kinds.
  const foreign = (row.observed?.foreign ?? []).filter(({ member }) => member).map(({ id }) => id);
  return ensureParent(client, {
    claim,
    groupKinds: [...groupKinds, ...foreign],
    ...defined({ expectedClusterUid: clusterUid }),
    ...(settledThrough === undefined ? {} : { settledThrough, unsettled: applied?.unsettled }),
  });
}
