/** The states of gates, and when a stage run is examined again because of them. */

/** When a stage run has to be examined again, although nobody reports anything. */
export interface Timer {
  readonly at: string;
  readonly why: string;
}

/** The common result of the gates before, or after, the targets of a stage run. */
export type GateState =
  | { readonly state: "passed" }
  | { readonly state: "waiting"; readonly message: string; readonly timers: readonly Timer[] }
  | { readonly state: "failed"; readonly message: string };
