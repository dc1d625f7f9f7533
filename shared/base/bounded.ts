/** Limited strings, lists and maps. The limits are part of the published JSON Schema and of docs/spec. */
import * as z from "zod";

/** A string with a maximum length. A longer one is not checked further. */
export function boundedText(most: number) {
  return z.string().max(most, { error: `must have at most ${most} characters`, abort: true });
}

export function boundedList<Item extends z.ZodType>(item: Item, most: number) {
  return z.array(item).max(most, `must have at most ${most} items`);
}

export function boundedMap<Key extends z.ZodString, Value extends z.ZodString>(key: Key, value: Value, most: number) {
  return z
    .record(key, value)
    .refine((map) => Object.keys(map).length <= most, `must have at most ${most} members`)
    .meta({ maxProperties: most });
}
