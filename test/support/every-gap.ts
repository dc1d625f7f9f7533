import type { Table } from "#shared/ports.ts";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";

/** The table as one writer sees it while another takes its turn. */
export type Gap = (table: Table, rival: () => Promise<void>) => Table;

/**
 * Tells a story of two writers once for every call that the first one makes to the table: the rival takes its turn right
 * before that call. A story makes its own world and judges its end.
 * @returns how many gaps there were.
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
