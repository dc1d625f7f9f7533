/** What DynamoDB takes of one item: 400 KB of names and values. */
export const MAX_ROW_BYTES = 400 * 1024;

const CONTAINER_BYTES = 3;
const ELEMENT_BYTES = 1;
/** One for two digits, one for the sign, and one more. */
const NUMBER_BYTES = 21;

/** The size of an item as DynamoDB counts it: rather a few bytes more than less. */
export function rowBytes(row: object): number {
  return membersBytes(row) - Object.keys(row).length * ELEMENT_BYTES;
}

/** `observed (390 KB), spec (8 KB)`: where the most of a row is. */
export function largestAttributes(row: object, most = 3): string {
  return Object.entries(row)
    .map(([name, value]) => ({ name, bytes: valueBytes(value) }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, most)
    .map(({ name, bytes }) => `${name} (${Math.ceil(bytes / 1024)} KB)`)
    .join(", ");
}

function valueBytes(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number" || typeof value === "bigint") return NUMBER_BYTES;
  if (typeof value !== "object" || value === null) return 1;
  if (!Array.isArray(value)) return CONTAINER_BYTES + membersBytes(value);
  return value.reduce<number>((sum, item) => sum + ELEMENT_BYTES + valueBytes(item), CONTAINER_BYTES);
}

function membersBytes(map: object): number {
  let sum = 0;
  for (const [name, value] of Object.entries(map)) {
    if (value !== undefined) sum += Buffer.byteLength(name) + ELEMENT_BYTES + valueBytes(value);
  }
  return sum;
}
