/** What a line of the logs is about: `starling logs`, the saved queries and the runbook find lines by these fields. */
import type { Subject } from "#shared/fleet/rows/keys.ts";
import type { LegRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface LogFields {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Of a Sync that a group made: the group, `SyncGroup/shop`. */
  readonly subject?: string;
  readonly cluster?: string;
  readonly revision?: string;
  /** `shop-12` */
  readonly rollout?: string;
}

export function syncFields({ namespace, name, subject, cluster, desired }: SyncRow): LogFields {
  const { revision } = desired;
  const rollout = rolloutText(subject, desired.rollout);
  return { kind: "Sync", namespace, name, subject: subjectText(subject), cluster, revision, rollout };
}

export function legFields({ subject, content }: Pick<LegRow, "subject" | "content">): LogFields {
  return { ...subjectFields(subject), rollout: rolloutText(subject, content) };
}

export function subjectFields({ kind, namespace, name }: Subject): LogFields {
  return { kind, namespace, name, subject: subjectText({ kind, name }) };
}

function rolloutText({ name }: Pick<Subject, "name">, content: number): string {
  return `${name}-${content}`;
}

function subjectText({ kind, name }: Pick<Subject, "kind" | "name">): string {
  return `${kind}/${name}`;
}
