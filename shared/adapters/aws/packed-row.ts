/**
 * Packs the seldom needed attributes of rows above a kilobyte into one attribute. DynamoDB counts each started
 * kilobyte, and counts it twice in a transaction. Readers get the row as it was written.
 */
import { deflateSync, inflateSync } from "node:zlib";
import { canonicalJson, parseJson } from "#shared/base/json.ts";
import type { DiscoveryRow } from "#shared/fleet/rows/discovery-rows.ts";
import type { Row, RowKey } from "#shared/fleet/rows/row.ts";
import { maxRowBytes, rowBytes } from "#shared/fleet/rows/row-size.ts";
import type { RowType } from "#shared/fleet/rows/stored-row.ts";

/**
 * Types whose conditions use only bare attributes, and whose updates only set attributes or remove timers. A
 * ClusterDiscovery is not among them, because clusters are forgotten on condition of its generation.
 */
const packedTypes: ReadonlySet<string> = new Set<RowType>([
  "SyncOnCluster",
  "SyncGroup",
  "Sync",
  "Source",
  "Cluster",
  "RolloutState",
  "StageRun",
]);

/** Attributes that DynamoDB reads, or that are read or changed alone. */
const bare: ReadonlySet<string> = new Set<keyof DiscoveryRow>([
  "pk",
  "sk",
  "type",
  "schema",
  "version",
  "dueShard",
  "dueKey",
  "dispatches",
  "statePk",
  "stateSk",
  "expiresAt",
  "scanUntil",
]);

/** Whether a condition can use the attribute in every row of the type. */
export function isConditionable(type: string, attribute: string): boolean {
  return bare.has(attribute) || !packedTypes.has(type);
}

/** DynamoDB counts in these units. */
const unitBytes = 1024;

/**
 * A typical Sync on a cluster, without the values that differ. Packed rows were deflated with this text as their
 * dictionary, so that it must never change. A better text gets a new number.
 */
const dictionary = `{"cluster":"","desired":{"action":"apply","apply":{"drift":"correct","interval":"1h","prune":true},"assignedAt":"","attempt":2,"earlier":[""],"input":"sha256:","renderDigest":"sha256:","revision":"main@sha1:","rollout":2,"source":"","token":""},"name":"","namespace":"","observed":{"applied":{"at":"","attempt":2,"renderDigest":"sha256:","revision":"main@sha1:"},"at":"","attempt":2,"claimed":"","clusterUid":"","conditions":[{"message":"20 objects ready","reason":"Ready","since":"","status":"True","type":"Ready"},{"message":"","reason":"Settled","since":"","status":"False","type":"Reconciling"},{"message":"","reason":"Ready","since":"","status":"False","type":"Stalled"},{"message":"","reason":"InSync","since":"","status":"False","type":"Drifted"}],"fence":4,"inspectedAt":"","inventory":"sha256:","message":"20 objects ready","objects":{"failed":0,"foreign":0,"ready":20,"total":20},"phase":"Ready","progress":{"applied":20,"at":"","ready":20},"readyAt":"","reason":"Ready","since":"","startedAt":"","tries":0,"problems":[]},"owner":{"kind":"SyncGroup","name":"","namespace":""},"ownerUid":"","uid":""}`;

/** The row in its written form, packed when that takes fewer units. */
export function packedRow(row: Row): object {
  const size = rowBytes(row);
  if (size <= unitBytes || !packedTypes.has(row.type)) return { ...row };
  const [kept, rest]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  for (const [name, value] of Object.entries(row)) (bare.has(name) ? kept : rest)[name] = value;
  const packed = deflateSync(canonicalJson(rest), { level: 9, dictionary: textBefore(row) });
  const smaller = rowBytes(kept) + "packed1".length + packed.length;
  return units(smaller) < units(size) ? { ...kept, packed1: packed } : { ...row };
}

/**
 * The row as it was given. An attribute that was updated later takes precedence over the packed one. @throws Error when
 * the row was packed under another key.
 */
export function unpackedRow(item: object): object {
  if (!("packed1" in item)) return item;
  const { packed1: packed, ...kept } = item;
  const text = inflateSync(packed as Uint8Array, {
    dictionary: textBefore(kept as unknown as RowKey),
    // For text. The size of a row also counts quotes, commas and escapes.
    maxOutputLength: 8 * maxRowBytes,
  });
  return { ...(parseJson(text.toString()) as object), ...kept };
}

/** Names are also in the key. */
function textBefore({ pk, sk }: RowKey): Buffer {
  return Buffer.from(`${dictionary}${pk} ${sk}`);
}

function units(bytes: number): number {
  return Math.ceil(bytes / unitBytes);
}
