/**
 * The shape of the rows that the roles of zones may write. A role that fell into other hands can write anything there, and the
 * functions that read the rows of several zones rely on the shape. A row of another shape is left alone, like one of a newer version.
 */
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";
import type { CheckRow, ZoneCheckRow } from "#shared/fleet/rows/check-row.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { ClusterRow, Condition } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Deaths, Desired, Held, ObjectProblem, Observed, Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ZoneRow } from "#shared/fleet/rows/zone-row.ts";

type Fits = (value: unknown) => boolean;

/** Longer than everything that Starling writes into these fields, and short enough for the rows that repeat some of them. */
const longestText = 16_384;

/** A row of one of these types, or a part of one, has these fields. Other fields may have any value. */
type Fields<Whole> = { readonly [Field in keyof Whole]?: Fits };

const text: Fits = (value) => typeof value === "string" && value.length <= longestText;
const number: Fits = (value) => typeof value === "number";
const time: Fits = (value) => typeof value === "string" && !Number.isNaN(Date.parse(value));
const duration: Fits = (value) => typeof value === "string" && durationSeconds(value) !== undefined;
const ownerKind: Fits = (value) => value === "SyncGroup" || value === "Sync";
/** A number that conditions of writes compare. The first is 1. */
const version: Fits = (value) => typeof value === "number" && value > 0;

function maybe(fits: Fits): Fits {
  return (value) => value === undefined || fits(value);
}

function listOf(fits: Fits): Fits {
  return (value) => Array.isArray(value) && value.every(fits);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mapOf(fits: Fits): Fits {
  return (value) => isObject(value) && Object.values(value).every(fits);
}

function having<Whole>(fields: Fields<Whole>): Fits {
  const each = Object.entries<Fits | undefined>(fields);
  return (value) => isObject(value) && each.every(([name, fits]) => fits?.(value[name]) !== false);
}

const texts = maybe(listOf(text));
const act = having<{ by: string; at: string }>({ by: text, at: time });
const condition = having<Condition>({ type: text, status: text, reason: text, message: text, since: time });
const problem = having<ObjectProblem>({ object: text, reason: text, message: text });
const problems = maybe(listOf(problem));

const access = maybe(having<NonNullable<ClusterRow["spec"]["access"]>>({ zone: maybe(text), role: maybe(isObject) }));
const cluster = having<ClusterRow>({
  version,
  name: text,
  uid: text,
  labels: mapOf(text),
  annotations: isObject,
  generation: number,
  createdAt: maybe(time),
  spec: having<ClusterRow["spec"]>({
    access,
    eks: maybe(having<NonNullable<ClusterRow["spec"]["eks"]>>({ arn: text, endpointOverride: maybe(isObject) })),
    endpoint: maybe(isObject),
    values: maybe(isObject),
    kubeVersion: maybe(text),
  }),
  discovered: maybe(
    having<NonNullable<ClusterRow["discovered"]>>({
      by: text,
      arn: text,
      labels: mapOf(text),
      values: isObject,
      access,
      createdAt: maybe(time),
      goneSince: maybe(time),
    }),
  ),
  operations: having<ClusterRow["operations"]>({
    accepted: maybe(act),
    cordoned: maybe(act),
    uncordoned: maybe(act),
  }),
  status: having<ClusterRow["status"]>({
    uid: maybe(text),
    version: maybe(text),
    lastSeenAt: maybe(time),
    blobsAt: maybe(time),
    renewedAt: maybe(time),
    address: maybe(isObject),
    mismatch: maybe(text),
    conditions: listOf(condition),
  }),
});

const desired = having<Desired>({
  action: text,
  attempt: number,
  revision: text,
  renderDigest: maybe(text),
  input: maybe(text),
  source: maybe(text),
  leftOut: texts,
  apply: having<Desired["apply"]>({ interval: duration }),
  rollout: number,
  assignedAt: time,
  startAt: maybe(time),
  beginBefore: maybe(time),
  mayPrune: texts,
  instead: maybe(isObject),
  token: maybe(text),
  earlier: texts,
  tried: texts,
  keptThrough: maybe(number),
});

const observed = having<Observed>({
  attempt: number,
  phase: text,
  reason: text,
  message: text,
  startedAt: time,
  readyAt: maybe(time),
  since: time,
  at: time,
  nextAt: maybe(time),
  tries: number,
  failedSince: maybe(time),
  progress: maybe(having<NonNullable<Observed["progress"]>>({ at: time, applied: number, ready: number })),
  deniedAt: maybe(time),
  clusterUid: maybe(text),
  claimed: maybe(text),
  remembered: maybe(having<NonNullable<Observed["remembered"]>>({ attempt: number, fence: number })),
  applied: maybe(
    having<NonNullable<Observed["applied"]>>({
      renderDigest: text,
      revision: text,
      attempt: number,
      at: time,
      unsettled: texts,
    }),
  ),
  inspectedAt: maybe(time),
  inventory: maybe(text),
  objects: having<Observed["objects"]>({ total: number, ready: number, failed: number, foreign: number }),
  foreign: maybe(listOf(having<NonNullable<Observed["foreign"]>[number]>({ id: mapOf(text), uid: text }))),
  rebuilt: maybe(
    having<NonNullable<Observed["rebuilt"]>>({
      at: time,
      reason: text,
      message: text,
      members: number,
      foreign: number,
    }),
  ),
  problems: listOf(problem),
  warnings: maybe(listOf(having<NonNullable<Observed["warnings"]>[number]>({ object: text, message: text }))),
  leftAlone: problems,
  drift: maybe(having<NonNullable<Observed["drift"]>>({ at: time, objects: number, named: problems })),
  guardedPrune: maybe(
    having<NonNullable<Observed["guardedPrune"]>>({ count: number, members: number, allowed: number, hash: text }),
  ),
  handledPrune: maybe(number),
  handledReconcile: maybe(number),
  fence: number,
  conditions: listOf(condition),
});

const sync = having<SyncRow>({
  version,
  cluster: text,
  namespace: text,
  name: text,
  uid: text,
  owner: having<SyncRow["owner"]>({ namespace: text, kind: ownerKind, name: text }),
  ownerUid: text,
  desired,
  observed: maybe(observed),
  paused: maybe(having<Paused>({ reason: text, at: time, freeze: maybe(text), zone: maybe(text) })),
  reconcile: maybe(number),
  operations: maybe(isObject),
  recovered: maybe(having<NonNullable<SyncRow["recovered"]>>({ by: text, at: time, remembered: isObject })),
  held: maybe(having<Held>({ name: text, by: text, attempt: number, since: time, at: time, until: maybe(time) })),
  deaths: maybe(having<Deaths>({ desired: text, attempt: maybe(number), at: time, alone: number })),
});

const lease = having<LeaseRow>({
  version: maybe(version),
  fence: maybe(number),
  desired: maybe(number),
  owner: maybe(text),
  leaseUntil: maybe(time),
  begun: maybe(having<NonNullable<LeaseRow["begun"]>>({ sync: text, desired: text, attempt: maybe(number) })),
  routine: maybe(mapOf(time)),
  use: maybe(having<NonNullable<LeaseRow["use"]>>({ since: time, seconds: number, slowUntil: maybe(time) })),
});

const asked = having<CheckRow["asked"]>({ id: text, at: time, by: text });
const clusterChecked = having<CheckRow>({
  asked,
  answer: maybe(
    having<NonNullable<CheckRow["answer"]>>({
      id: text,
      at: time,
      links: listOf(
        having<NonNullable<CheckRow["answer"]>["links"][number]>({
          link: text,
          state: text,
          value: maybe(text),
          code: maybe(text),
          message: maybe(text),
          remedy: maybe(text),
        }),
      ),
    }),
  ),
});

type Service = NonNullable<ZoneCheckRow["answer"]>["services"][number];
const zoneChecked = having<ZoneCheckRow>({
  asked: having<ZoneCheckRow["asked"]>({ id: text, at: time, by: text, needs: isObject }),
  answer: maybe(
    having<NonNullable<ZoneCheckRow["answer"]>>({
      id: text,
      at: time,
      region: text,
      network: isObject,
      subnets: maybe(number),
      services: listOf(
        having<Service>({
          service: text,
          region: text,
          state: text,
          host: text,
          addresses: listOf(text),
          network: maybe(text),
          link: maybe(text),
          code: maybe(text),
          message: maybe(text),
          remedy: maybe(text),
        }),
      ),
    }),
  ),
});

const zone = having<ZoneRow>({ workedAt: time, silentSince: maybe(time), release: maybe(text) });

const shapes: { readonly [Type in RowType]?: Fits } = {
  Cluster: cluster,
  SyncOnCluster: sync,
  Lease: lease,
  Check: clusterChecked,
  Zone: zone,
  ZoneCheck: zoneChecked,
};

/** Whether the row has the shape of its type. Nobody but Starling writes the types that have none here. */
export function hasShape(row: Pick<Row, "type">): boolean {
  return shapes[row.type as RowType]?.(row) !== false;
}
