/** When the timer was alive last: one row, written by every tick that got through. A dead timer says nothing of itself. */
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface TickRow extends Row {
  readonly type: "Tick";
  /** Of the end of a tick. */
  readonly at: string;
}

export function tickUpdate(at: Date) {
  return {
    update: keys.tick,
    set: { type: "Tick", schema: rowSchema, at: at.toISOString() },
    add: { version: 1 },
  };
}
