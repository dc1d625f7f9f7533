/** One row that every completed tick writes, so that its age shows when ticks have stopped. */
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface TickRow extends Row {
  readonly type: "Tick";
  /** When the last tick ended. */
  readonly at: string;
}

export function tickUpdate(at: Date) {
  return {
    update: keys.tick,
    set: { type: "Tick", schema: rowSchema, at: at.toISOString() },
    add: { version: 1 },
  };
}
