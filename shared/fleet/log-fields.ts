/** The fields that tell what a log line is about: `starling logs`, the saved queries and the runbook search for them. */
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface LogFields {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** For a Sync that a group made: the group, `SyncGroup/shop`. */
  readonly owner?: string;
  readonly cluster?: string;
  readonly revision?: string;
  /** `shop-12` */
  readonly rollout?: string;
}

export function syncFields({ namespace, name, owner, cluster, desired }: SyncRow): LogFields {
  const { revision } = desired;
  const rollout = rolloutText(owner, desired.rollout);
  return { kind: "Sync", namespace, name, owner: ownerText(owner), cluster, revision, rollout };
}

export function stageRunFields({ owner, rollout }: Pick<StageRunRow, "owner" | "rollout">): LogFields {
  return { ...ownerFields(owner), rollout: rolloutText(owner, rollout) };
}

export function ownerFields({ kind, namespace, name }: Owner): LogFields {
  return { kind, namespace, name, owner: ownerText({ kind, name }) };
}

function rolloutText({ name }: Pick<Owner, "name">, rollout: number): string {
  return `${name}-${rollout}`;
}

function ownerText({ kind, name }: Pick<Owner, "kind" | "name">): string {
  return `${kind}/${name}`;
}
