/** The form in which rows are stored: packed, bounded in size, and readable by this version only. */

import { deflateSync, inflateSync } from "node:zlib";
import { StarlingError } from "#shared/base/errors.ts";
import { canonicalJson, parseJson } from "#shared/base/json.ts";
import type { DiscoveryRow } from "#shared/fleet/rows/discovery-rows.ts";
import { isNamedByKey, rowTypeOf } from "#shared/fleet/rows/keys.ts";
import {
  keyText,
  type NewerRow,
  newerRowText,
  newestRowSchema,
  type Row,
  type RowKey,
} from "#shared/fleet/rows/row.ts";
import { hasShape } from "#shared/fleet/rows/row-shape.ts";
import { largestAttributes, maxRowBytes, rowBytes } from "#shared/fleet/rows/row-size.ts";
import type { Newer, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Write } from "#shared/ports.ts";

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

/**
 * The row in its written form: its seldom needed attributes are packed into one when that takes fewer units. DynamoDB
 * counts each started kilobyte, and counts it twice in a transaction.
 */
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

/**
 * The row, unless a newer version of Starling wrote it, its type or its names do not fit its key, or a row that roles of zones
 * may write has another shape. Guessing its meaning could undo its changes. A caller that can continue without such rows
 * requests them as `NewerRow`. Nothing else is checked, because nobody else writes here and rows can be large.
 */
export function readableRow<Type extends RowType, Kept extends Newer = undefined>(
  item: object,
  { newer }: { readonly newer?: Kept } = {},
): RowRead<Type, Kept> {
  const { pk, sk, schema, type } = item as Readonly<Record<string, unknown>>;
  const key = { pk: String(pk), sk: String(sk) };
  const expected = rowTypeOf(key);
  const isOfNewer = typeof schema === "number" && schema > newestRowSchema;
  const isAsExpected = expected === undefined || (type === expected && typeof schema === "number");
  const unpacked = isAsExpected && !isOfNewer ? unpackedOrNone(item) : undefined;
  if (unpacked !== undefined && isNamedByKey(key, unpacked) && hasShape(unpacked as Row))
    return unpacked as RowRead<Type, Kept>;
  const row: NewerRow = { ...key, type: "Newer", schema: Number(schema ?? 0), version: 0 };
  if (newer === "kept") return row as RowRead<Type, Kept>;
  const code = isOfNewer ? "NewerRow" : "UnexpectedRow";
  throw new StarlingError(newerRowText(row), { code, retry: "permanent", data: { pk, sk, schema } });
}

/** A row that was packed under another key, or is damaged, does not prevent reading the others. */
function unpackedOrNone(item: object): object | undefined {
  try {
    return unpackedRow(item);
  } catch {
    return undefined;
  }
}

/** Checks the sizes before any write of a transaction. @throws StarlingError `RowTooLarge` */
export function refuseLargeRows(writes: readonly Write[]): void {
  for (const write of writes) {
    if ("put" in write) refuseLargeRow(write.put);
    else if ("update" in write) refuseLargeRow({ ...write.update, ...write.set });
  }
}

/** @throws StarlingError `RowTooLarge` */
export function refuseLargeRow(row: RowKey): void {
  const bytes = rowBytes(row);
  if (bytes > maxRowBytes) throw rowTooLarge(row, `has ${bytes} bytes, most of them in ${largestAttributes(row)}`);
}

export function rowTooLarge({ pk, sk }: RowKey, size: string): StarlingError {
  return new StarlingError(
    `row ${keyText({ pk, sk })} ${size}; a row may have at most ${maxRowBytes} bytes: make its content smaller`,
    { code: "RowTooLarge", retry: "permanent", data: { row: { pk, sk } } },
  );
}
