import type { Table } from "#shared/ports.ts";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";

/** The table of one writer, in which another writer acts at a chosen call. */
export type Gap = (table: Table, rival: () => Promise<void>) => Table;

/**
 * Plays a story of two writers once per call of the first writer to the table. The second writer acts right before that
 * call. A story creates its own world and checks its end. @returns the number of calls.
 */
export async function inEveryGap(story: (gap: Gap) => Promise<void>): Promise<number> {
  for (let at = 1; ; at++) {
    let turns = 0;
    await story((table, rival) => {
      const act = async () => {
        turns++;
        await rival();
      };
      return new DisturbedPorts({ table, sender: { send: async () => {} } }, { midst: [{ at, act }] }).table;
    });
    if (turns === 0) return at - 1;
  }
}
