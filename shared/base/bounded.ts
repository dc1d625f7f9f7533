/** Limited strings, lists and maps. The limits are part of the published JSON Schema and of docs/spec. */
import * as z from "zod";
import { counted } from "#shared/base/counted.ts";

/** A string with a maximum length. A longer one is not checked further. @param desired - says what is missing without it. */
export function boundedText(most: number, desired?: string) {
  return z
    .string({ error: ({ input }) => (input === undefined ? desired : undefined) })
    .max(most, { error: `must have at most ${most} characters`, abort: true });
}

/** @param desired - says what it is, for whoever has written none or something else. */
export function boundedList<Item extends z.ZodType>(item: Item, most: number, desired?: string) {
  return z.array(item, { error: () => desired }).max(most, `must have at most ${counted(most, "item")}`);
}

export function boundedMap<Key extends z.ZodString, Value extends z.ZodString>(key: Key, value: Value, most: number) {
  return z
    .record(key, value)
    .refine((map) => Object.keys(map).length <= most, `must have at most ${most} members`)
    .meta({ maxProperties: most });
}
