/**
 * Counts how long the renderings of one folder of a Source take, and which of them run now: pure functions of a row.
 * Renderings of a slow folder leave half of the places to others, and wait for their turn in the order of their requests.
 */
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isSlow, type PlaceUse, type Stay, useAfter } from "#shared/fleet/rows/place-use.ts";
import type { SourceRef } from "#shared/fleet/rows/rollout-rows.ts";
import { type Row, type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";

interface Turn {
  readonly input: string;
  /** The turn of a renderer that died ends then. */
  readonly until: string;
}

export interface FolderUseRow extends Row {
  readonly type: "FolderUse";
  readonly use: PlaceUse;
  /** Inputs that are rendered now; only noted for a slow folder. */
  readonly turns?: readonly Turn[];
  /** Inputs that wait for a turn. An input that has no place here is requested again by its own watchdog. */
  readonly queue?: readonly string[];
}

/** A shorter rendering is not noted; most take a tenth of this. */
const leastSeconds = 5;
const longestQueue = 200;
const keptSeconds = 86_400;

/** The row's key for the newest Source that may have the artifact; undefined when no Source is known. */
export function folderUseKey(
  sources: readonly SourceRef[] | undefined,
  path: string,
): RowKeyOf<"FolderUse"> | undefined {
  const source = sources?.findLast(({ besides }) => besides === undefined);
  return source === undefined ? undefined : keys.folderUse(source, path);
}

export type FolderTurn =
  /** The folder is not slow. */
  | { readonly turn: "none needed" }
  | { readonly turn: "granted"; readonly next: FolderUseRow }
  /** `next` is absent when the input is in the queue already, or when the queue is full. */
  | { readonly turn: "later"; readonly next?: FolderUseRow };

export interface TurnRequest {
  readonly input: string;
  readonly until: string;
  readonly now: Date;
  /** How many turns the folder may have at once. */
  readonly turns: number;
}

export function askForTurn(row: FolderUseRow | undefined, { input, until, now, turns }: TurnRequest): FolderTurn {
  if (row === undefined || !isSlow(row.use, now)) return { turn: "none needed" };
  const others = turnsOfOthers(row, input, now);
  const queue = row.queue ?? [];
  if (others.length < turns) {
    const next = changed(row, { turns: [...others, { input, until }], queue: queue.filter((each) => each !== input) });
    return { turn: "granted", next };
  }
  if (queue.includes(input) || queue.length >= longestQueue) return { turn: "later" };
  return { turn: "later", next: changed(row, { turns: row.turns ?? [], queue: [...queue, input] }) };
}

/** Whether a rendering without a turn took long enough to be noted. */
export function isWorthNoting({ from, to }: Pick<Stay, "from" | "to">): boolean {
  return to.getTime() - from.getTime() >= leastSeconds * 1000;
}

/** @returns the row after the rendering of `input`, and the inputs whose turn is next. */
export function turnEnded(
  row: FolderUseRow | undefined,
  ended: { readonly key: RowKeyOf<"FolderUse">; readonly input: string; readonly turns: number } & Pick<
    Stay,
    "from" | "to"
  >,
): { readonly next: FolderUseRow; readonly called: readonly string[] } {
  const { key, input, turns, from, to } = ended;
  const use = useAfter(row?.use, { from, to, keptWaiting: false }) ?? { since: from.toISOString(), seconds: 0 };
  const before = row ?? { ...key, type: "FolderUse", schema: rowSchema, version: 0, use };
  const others = turnsOfOthers(before, input, to);
  const queue = before.queue ?? [];
  const called = queue.slice(0, isSlow(use, to) ? Math.max(0, turns - others.length) : queue.length);
  const next = changed({ ...before, use }, { turns: others, queue: queue.slice(called.length) });
  return { next: { ...next, expiresAt: expiryOf(to, keptSeconds) }, called };
}

function turnsOfOthers({ turns = [] }: Pick<FolderUseRow, "turns">, input: string, now: Date): readonly Turn[] {
  return turns.filter((turn) => turn.input !== input && turn.until > now.toISOString());
}

function changed(
  { turns: _turns, queue: _queue, ...row }: FolderUseRow,
  { turns, queue }: { readonly turns: readonly Turn[]; readonly queue: readonly string[] },
): FolderUseRow {
  return {
    ...row,
    version: row.version + 1,
    ...(turns.length === 0 ? {} : { turns }),
    ...(queue.length === 0 ? {} : { queue }),
  };
}
