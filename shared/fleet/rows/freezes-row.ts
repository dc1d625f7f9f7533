/**
 * One row with all freezes; every worker reads it before it writes to a cluster. It holds the freezes in force, and for
 * a while those that have ended, because the time of a freeze does not count against deadlines. Only `api` writes it.
 */

import * as z from "zod";
import { labelSelectorSchema, matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";

const freezeSchema = z.object({
  name: z.string(),
  /** When absent, every cluster. `text` is the selector as people wrote it. */
  clusters: z.object({ text: z.string(), selector: labelSelectorSchema }).optional(),
  by: z.string(),
  at: z.string(),
  reason: z.string(),
  until: z.string().optional(),
});
export type Freeze = z.infer<typeof freezeSchema>;

/** A freeze that somebody lifted. */
const liftedSchema = freezeSchema.extend({ lifted: z.object({ by: z.string(), at: z.string() }) });
export type LiftedFreeze = z.infer<typeof liftedSchema>;

const freezesSchema = z.object({
  type: z.literal("Freezes"),
  freezes: z.array(freezeSchema),
  lifted: z.array(liftedSchema),
});

export interface FreezesRow extends Row {
  readonly type: "Freezes";
  /** Freezes whose time has passed stay in it until the next write. */
  readonly freezes: readonly Freeze[];
  readonly lifted: readonly LiftedFreeze[];
}

/** The freezes of the row; none where there is no row. */
export type FreezeState = Pick<FreezesRow, "freezes" | "lifted">;

const released: FreezeState = { freezes: [], lifted: [] };

/** Unreadable freezes may cover every cluster: then nothing may be written to any cluster. */
export type FreezeStateReading =
  | { readonly ok: true; readonly freezeState: FreezeState }
  | { readonly ok: false; readonly message: string };

/** Finds the freezes among rows that were read with their key. */
export function freezeStateAmong(rows: readonly Row[]): FreezeStateReading {
  const row = rows.find((one) => keyText(one) === keyText(keys.freezeState));
  if (row === undefined) return { ok: true, freezeState: released };
  const parsed = freezesSchema.safeParse(row);
  if (parsed.success) return { ok: true, freezeState: parsed.data };
  const [issue] = parsed.error.issues;
  const what = `${issue?.path.join(".") ?? "row"}: ${issue?.message ?? "unknown"}`;
  const remedy = "deploy the version of Starling that wrote them, or a newer one";
  return {
    ok: false,
    message: `the freezes cannot be read (${what}), so nothing is written to any cluster; ${remedy}`,
  };
}

type Labels = Readonly<Record<string, string>>;

export function freezeCovers({ clusters }: Freeze, labels: Labels): boolean {
  return clusters === undefined || matchesSelector(clusters.selector, labels);
}

export function isInForce({ until }: Pick<Freeze, "until">, now: Date): boolean {
  return until === undefined || until > now.toISOString();
}

/** The freeze that covers a cluster with these labels; of several the one that lasts longest. */
export function freezeOver(freezeState: FreezeState, labels: Labels, now: Date): Freeze | undefined {
  const holding = freezeState.freezes.filter((freeze) => isInForce(freeze, now) && freezeCovers(freeze, labels));
  return holding.sort((a, b) => (lastsUntil(b) > lastsUntil(a) ? 1 : -1))[0];
}

/** The freeze that covers every cluster, whatever its labels. */
export function freezeOfAll({ freezes, lifted }: FreezeState, now: Date): Freeze | undefined {
  return freezeOver({ freezes: freezes.filter(({ clusters }) => clusters === undefined), lifted }, {}, now);
}

/** No freeze is in force, or ended lately. */
export function isReleased({ freezes, lifted }: FreezeState): boolean {
  return freezes.length + lifted.length === 0;
}

function lastsUntil({ until }: Freeze): string {
  return until ?? "~";
}

/** When a freeze last released a cluster with these labels; undefined when that never happened, or long ago. */
export function releasedAt(freezeState: FreezeState, labels: Labels, now: Date): string | undefined {
  const lifted = freezeState.lifted.filter((freeze) => freezeCovers(freeze, labels)).map(freezeEnd);
  const over = freezeState.freezes
    .filter((freeze) => !isInForce(freeze, now) && freezeCovers(freeze, labels))
    .flatMap(({ until }) => until ?? []);
  return [...lifted, ...over].sort().at(-1);
}

/** A freeze whose time had passed ended before somebody lifted it. */
export function freezeEnd({ lifted, until }: LiftedFreeze): string {
  return until !== undefined && until < lifted.at ? until : lifted.at;
}

/** One line: by whom, why, and the command that lifts it. */
export function freezeText(freeze: Pick<Freeze, "name" | "by" | "reason" | "until">): string {
  const { name, by, reason } = freeze;
  return `frozen by ${by} (${reason}${endText(freeze)}); starling thaw ${name}`;
}
