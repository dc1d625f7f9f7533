import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { keys, type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Desired, Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";

const at = "2026-11-21T08:00:00.000Z";
const owner: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };

export function desiredOf(more: Partial<Desired>): Desired {
  return {
    action: "apply",
    attempt: 1,
    token: "token-1",
    revision: "main@sha1:aaa",
    renderDigest: "sha256:aaa",
    apply: applyOptions.parse({}),
    rollout: 1,
    assignedAt: at,
    ...more,
  };
}

export function observedOf(more: Partial<Observed>): Observed {
  return {
    attempt: 1,
    phase: "Ready",
    reason: "Ready",
    message: "",
    startedAt: at,
    since: at,
    at,
    tries: 0,
    objects: { total: 1, ready: 1, failed: 0, foreign: 0 },
    problems: [],
    fence: 1,
    conditions: [],
    ...more,
  };
}

/** `web.<template>` on a cluster; observed as far as it is given. */
export function syncRowOf(
  cluster: string,
  more: { readonly template?: string; readonly desired?: Partial<Desired>; readonly observed?: Partial<Observed> } = {},
): SyncRow {
  const name = `web.${more.template ?? "app"}`;
  const desired = desiredOf(more.desired ?? {});
  return {
    ...keys.sync(cluster, owner.namespace, name),
    type: "SyncOnCluster",
    schema: rowSchema,
    version: 1,
    cluster,
    namespace: owner.namespace,
    name,
    uid: `uid of ${name} on ${cluster}`,
    owner,
    ownerUid: "uid-of-the-owner",
    desired,
    ...(more.observed === undefined ? {} : { observed: observedOf({ attempt: desired.attempt, ...more.observed }) }),
    statePk: stateIndex.pk(owner),
    stateSk: stateIndex.sk(more.observed?.phase ?? "Assigned", { cluster, name }),
  };
}
