/** Computes a rendering's row after a try has ended. */
import { defined } from "#shared/base/defined.ts";
import { renderingExpiry } from "#shared/fleet/blob-life.ts";
import { backoffSeconds, backoffSecondsAfter, due, later } from "#shared/fleet/rows/due.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";

type Failure = NonNullable<RenderingRow["failure"]>;

export type RenderOutcome =
  | {
      readonly kind: "done";
      readonly digest: string;
      readonly objects: number;
      readonly leftOut?: readonly string[] | undefined;
    }
  | {
      readonly kind: "failed";
      readonly failure: Failure;
      /** The failure may be the input's fault, so it is not tried for ever. */
      readonly strike?: true;
    };

/** A rendering has failed after this many tries that may be the input's fault, or that began and never ended. */
export const maxStrikes = 5;

export function settledRendering(row: RenderingRow, outcome: RenderOutcome, now: Date): RenderingRow {
  const { claim: _claim, failure: _failure, retryAt: _rest, ...rest } = due(row, undefined);
  const next = { ...rest, version: row.version + 1 };
  if (outcome.kind === "done") {
    // The count of tries has no meaning any more.
    const { waiting: _waiting, strikes: _strikes, leftOut: _before, keptAt: _kept, ...done } = next;
    const { digest, objects, leftOut } = outcome;
    const ends = { doneAt: now.toISOString(), expiresAt: renderingExpiry(now) };
    return { ...done, state: "Done", digest, objects, ...defined({ leftOut }), ...ends };
  }
  const { failure, strike } = outcome;
  if (failure.permanent) {
    const { waiting: _waiting, ...failed } = next;
    return { ...failed, state: "Failed", failure };
  }
  const strikes = (row.strikes ?? 0) + (strike === true ? 1 : 0);
  const counted = strikes === 0 ? next : { ...next, strikes };
  if (strikes < maxStrikes) return due({ ...counted, failure }, later(now, backoffSeconds(row.tries)));
  const retryAt = later(now, backoffSecondsAfter(strikes - maxStrikes + 1));
  const reported = { ...failure, message: `${failure.message} (${adviceOf(row.tries, retryAt)})` };
  return due({ ...counted, state: "Failed", failure: reported, retryAt }, retryAt);
}

function adviceOf(tries: number, retryAt: string): string {
  return (
    `tried ${tries} times; it is tried again at ${retryAt}, and by \`starling reconcile\` of what uses it; ` +
    "if that goes on, make the folder smaller, or split it into several templates"
  );
}
