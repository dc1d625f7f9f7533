/** Turns of the renderings of a folder that takes long to render. */
import { replaceRow } from "#functions/render/replace-row.ts";
import type { Clock } from "#shared/base/clock.ts";
import { askForTurn, folderUseKey, isWorthNoting, turnEnded } from "#shared/fleet/rows/folder-use.ts";
import type { Stay } from "#shared/fleet/rows/place-use.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Log, MessageSender, Table } from "#shared/ports.ts";

export interface TurnPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly log: Log;
  /** Number of renderings of one slow folder at once. */
  readonly turns: number;
}

export type RenderTurn = "none needed" | "granted" | "later";

/** @param until - end of a turn whose holder died. */
export async function takeTurn(row: RenderingRow, until: string, ports: TurnPorts): Promise<RenderTurn> {
  const key = folderUseKey(row.sources, row.path);
  if (key === undefined) return "none needed";
  for (;;) {
    const folder = await ports.table.get(key);
    const { input, path } = row;
    const asked = askForTurn(folder, { input, until, now: ports.clock.now(), turns: ports.turns });
    if (asked.turn === "none needed" || asked.next === undefined) return asked.turn;
    if (!(await replaceRow(ports.table, folder, asked.next))) continue;
    if (asked.turn === "later") ports.log.info("rendering waits for its turn", { input, path });
    return asked.turn;
  }
}

/** Records the duration and starts the next turn; the row's watchdog makes up for a lost message. */
export async function endTurn(
  row: RenderingRow,
  { turn, ...stay }: { readonly turn: RenderTurn } & Pick<Stay, "from" | "to">,
  ports: TurnPorts,
): Promise<void> {
  const key = folderUseKey(row.sources, row.path);
  if (key === undefined || (turn === "none needed" && !isWorthNoting(stay))) return;
  for (;;) {
    const folder = await ports.table.get(key);
    const { next, called } = turnEnded(folder, { key, input: row.input, turns: ports.turns, ...stay });
    if (!(await replaceRow(ports.table, folder, next))) continue;
    await ports.sender.send(called.map((input) => ({ to: "render", input })));
    return;
  }
}
