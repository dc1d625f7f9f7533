/** The rows that a call to DynamoDB writes, as the writer had them. The stored form packs most of a row. */
import { unpackedRow } from "#shared/adapters/aws/row-form.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

interface TransactItem {
  readonly Put?: { readonly Item?: Readonly<Record<string, AttributeJson>> };
}

/** A value in DynamoDB's JSON, of the types in Starling's rows. */
interface AttributeJson {
  readonly S?: string;
  readonly N?: string;
  readonly BOOL?: boolean;
  readonly NULL?: true;
  readonly B?: string;
  readonly L?: readonly AttributeJson[];
  readonly M?: Readonly<Record<string, AttributeJson>>;
}

/** @param request - of any operation that writes rows. */
export function writtenRows(request: Readonly<Record<string, unknown>>): readonly Row[] {
  const items = (request.TransactItems ?? [{ Put: request }]) as readonly TransactItem[];
  return items.flatMap(({ Put }) => (Put?.Item === undefined ? [] : [unpackedRow(plainItem(Put.Item)) as Row]));
}

function plainItem(item: Readonly<Record<string, AttributeJson>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(value: AttributeJson): unknown {
  if (value.M !== undefined) return plainItem(value.M);
  if (value.L !== undefined) return value.L.map(plainValue);
  if (value.N !== undefined) return Number(value.N);
  if (value.B !== undefined) return Buffer.from(value.B, "base64");
  return value.S ?? value.BOOL ?? null;
}
