/** The largest item of DynamoDB: 400 KB of names and values. */
export const maxRowBytes = 400 * 1024;

const containerBytes = 3;
const elementBytes = 1;
/** One for two digits, one for the sign, and one more. */
const numberBytes = 21;

/** The size of an item as DynamoDB counts it: rather a few bytes more than less. */
export function rowBytes(row: object): number {
  return membersBytes(row) - Object.keys(row).length * elementBytes;
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
  if (typeof value === "number" || typeof value === "bigint") return numberBytes;
  if (typeof value !== "object" || value === null) return 1;
  if (!Array.isArray(value)) return containerBytes + membersBytes(value);
  return value.reduce<number>((sum, item) => sum + elementBytes + valueBytes(item), containerBytes);
}

function membersBytes(map: object): number {
  let sum = 0;
  for (const [name, value] of Object.entries(map)) {
    if (value !== undefined) sum += Buffer.byteLength(name) + elementBytes + valueBytes(value);
  }
  return sum;
}
