import { describe, expect, test } from "vitest";
import { packedRow, unpackedRow } from "#shared/adapters/aws/row-form.ts";
import { dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { rowBytes } from "#shared/fleet/rows/row-size.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const condition = (type: string) => ({ type, status: "False" as const, reason: "Settled", message: "", since: "" });
const digestOf = (digit: number) => `sha256:${String(digit).repeat(64)}`;

/** A row as large as that of a small set that has been updated once. */
function usualRow(): Row {
  const row = syncRowOf("c-1", {
    desired: { renderDigest: digestOf(1), input: digestOf(2), source: "app", token: "6de88e7b08da" },
    observed: {
      conditions: ["Ready", "Reconciling", "Stalled", "Drifted"].map(condition),
      inventory: digestOf(3),
      applied: { renderDigest: digestOf(4), revision: `main@sha1:${"d".repeat(40)}`, attempt: 1, at: "" },
      message: "x".repeat(40),
      clusterUid: "d19c57ab-d3a6-4536-9315-8ffbc2ab7fd7",
    },
  });
  return { ...row, ...dueAttributes(row, "2026-11-23T08:00:00.000Z"), statePk: "S#shop", stateSk: "Ready#c-1" };
}

describe("a packed row", () => {
  test("a packed row costs one write unit instead of two, and keeps the attributes that DynamoDB reads", () => {
    const row = usualRow();
    expect(rowBytes(row)).toBeGreaterThan(1024);
    const { packed1: _packed, ...kept } = packedRow(row) as { readonly packed1: Uint8Array } & Row;
    expect(rowBytes(kept) + _packed.length).toBeLessThan(1000);
    const { pk, sk, type, schema, version, dueShard, dueKey, statePk, stateSk } = row;
    expect(kept).toEqual({ pk, sk, type, schema, version, dueShard, dueKey, statePk, stateSk });
  });

  test("a packed row is unpacked unchanged, apart from the attributes that were updated since", () => {
    const row = usualRow();
    expect(unpackedRow(packedRow(row))).toEqual(row);
    expect(unpackedRow({ ...packedRow(row), version: 2, reconcile: 7 })).toEqual({ ...row, version: 2, reconcile: 7 });
  });

  test("a row that an earlier version packed can still be read", () => {
    const packed1 = Buffer.from(writtenOnce, "base64");
    const key = keys.sync("c-1", "shop", "web.app");
    expect(unpackedRow({ ...key, packed1 })).toEqual({
      ...key,
      cluster: "c-1",
      observed: { phase: "Ready", objects: { failed: 0, foreign: 0, ready: 20, total: 20 }, since: "2026-11-23" },
    });
  });

  test.each([
    ["the bytes of another row", { ...packedRow(usualRow()), sk: "SYNC#shop#web.other-app" }],
    [
      "bytes that are not packed attributes",
      { ...keys.sync("c-1", "shop", "web.app"), packed1: new Uint8Array([1, 2, 3]) },
    ],
  ])("a row with %s is an error", (_what, item) => {
    expect(() => unpackedRow(item)).toThrow();
  });
});

const large = { labels: { text: "x".repeat(2000) } };

test.each([
  ["is small", syncRowOf("c-1")],
  ["gains nothing", { ...syncRowOf("c-1"), noise: noise(1200) }],
  ["has attributes that conditions name", { ...keys.fleet("c-1"), ...of("Fleet"), ...large, uid: "u" }],
  ["is updated attribute by attribute", { ...keys.lease("c-1"), ...of("Lease"), ...large, owner: "o" }],
])("a row that %s is written as it is", (_what, row) => {
  expect(packedRow(row as Row)).toEqual(row);
});

function of(type: string) {
  return { type, schema: rowSchema, version: 1 };
}

/** A text that deflate hardly shrinks, the same each time. */
function noise(length: number): string {
  let state = 1;
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCharCode(33 + (state % 90));
  }).join("");
}

const writtenOnce = "ePmjymSyq0YqbJJ1DdHyG9UCEuZ7IwMjM11DQ10jY6XaWgCpViXh";
