/** The keys of the table, in the order of docs/architecture.md. */
import type { RowKey } from "#shared/fleet/rows/row.ts";

export interface Subject {
  readonly namespace: string;
  readonly kind: "SyncGroup" | "Sync";
  readonly name: string;
}

/** Wide enough that text order is number order. */
function padded(value: number, digits: number): string {
  return String(value).padStart(digits, "0");
}

export const keys = {
  object: (namespace: string, kind: string, name: string): RowKey => ({ pk: `NS#${namespace}#${kind}`, sk: name }),
  cluster: (cluster: string): RowKey => ({ pk: `CL#${cluster}`, sk: "META" }),
  sync: (cluster: string, namespace: string, name: string): RowKey => ({
    pk: `CL#${cluster}`,
    sk: `SYNC#${namespace}#${name}`,
  }),
  lease: (cluster: string): RowKey => ({ pk: `CL#${cluster}`, sk: "LEASE" }),
  brake: { pk: "BRAKE", sk: "META" } satisfies RowKey,
  fleet: (cluster: string): RowKey => ({ pk: "FLEET", sk: cluster }),
  subject: (subject: Subject): RowKey => ({
    pk: "SUBJECTS",
    sk: `${subject.namespace}#${subject.kind}#${subject.name}`,
  }),
  sourceEntry: (source: { readonly namespace: string; readonly name: string }): RowKey => ({
    pk: "SOURCES",
    sk: `${source.namespace}#${source.name}`,
  }),
  uses: (source: { readonly namespace: string; readonly name: string }, subject: Subject): RowKey => ({
    pk: `USES#${source.namespace}#${source.name}`,
    sk: `${subject.kind}#${subject.name}`,
  }),
  repository: (url: string, source: { readonly namespace: string; readonly name: string }): RowKey => ({
    pk: `REPO#${url}`,
    sk: `${source.namespace}#${source.name}`,
  }),
  head: (subject: Subject): RowKey => ({ pk: rolloutPartition(subject), sk: "HEAD" }),
  rollout: (subject: Subject, number: number): RowKey => ({ pk: rolloutPartition(subject), sk: padded(number, 8) }),
  target: (subject: Subject, number: number, target: { readonly order: number; readonly cluster: string }): RowKey => ({
    pk: rolloutPartition(subject),
    sk: `${padded(number, 8)}#T#${padded(target.order, 6)}#${target.cluster}`,
  }),
  rendering: (input: string): RowKey => ({ pk: `REND#${input}`, sk: "META" }),
  revision: (source: { readonly namespace: string; readonly name: string }, at: string, digest: string): RowKey => ({
    pk: `REV#${source.namespace}#${source.name}`,
    sk: `${at}#${digest}`,
  }),
  event: (
    about: { readonly namespace: string; readonly kind: string; readonly name: string },
    at: string,
    id: string,
  ): RowKey => ({
    pk: `EVT#${about.namespace}#${about.kind}#${about.name}`,
    sk: `${at}#${id}`,
  }),
} as const;

/** The cluster that a row of its own, or of the fleet directory, is about. */
export function clusterOf({ pk, sk }: RowKey): string {
  return pk === "FLEET" ? sk : pk.slice("CL#".length);
}

function rolloutPartition(subject: Subject): string {
  return `ROLL#${subject.namespace}#${subject.kind}#${subject.name}`;
}

/** The sort keys of a rollout's targets from one order on. */
export function targetRange(number: number, orders: { readonly from: number; readonly to: number }): [string, string] {
  const prefix = `${padded(number, 8)}#T#`;
  return [`${prefix}${padded(orders.from, 6)}`, `${prefix}${padded(orders.to, 6)}#\uffff`];
}

export function statePartition(subject: Subject): string {
  return `S#${subject.namespace}#${subject.kind}#${subject.name}`;
}

/** The name of a Sync on a cluster: `<group>.<template>`, or the name of the Sync a user wrote. */
export function syncName(subject: Subject, template: string): string {
  return subject.kind === "Sync" ? subject.name : `${subject.name}.${template}`;
}
