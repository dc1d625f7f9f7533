/** The verbs of people about the rollouts of a SyncGroup or Sync: what a request says, and what decides about it. */
import type * as z from "zod";
import type { Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import type { rolloutBodies } from "#functions/api/request/request-bodies.ts";
import type { ObjectEffects } from "#shared/fleet/forecast/rollback-effects.ts";
import type { RollbackPlan } from "#shared/fleet/rollout/rollback.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Act, Operations, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

export type RolloutVerb = keyof typeof rolloutBodies;
type Body<Verb extends RolloutVerb> = z.infer<(typeof rolloutBodies)[Verb]>;

interface Request<Verb extends RolloutVerb> {
  readonly owner: Owner;
  readonly verb: Verb;
  readonly body: Body<Verb>;
  readonly caller: Caller;
}
export type RolloutRequest = { readonly [Verb in RolloutVerb]: Request<Verb> }[RolloutVerb];

export interface RolloutAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly operations: Operations;
  /** Of a rollback: what it does, and what happens to objects, as far as that can be read. */
  readonly rollback?: RollbackPlan & { readonly objects?: ObjectEffects };
}

/** The facts that decide about a verb. */
export interface Facts<Verb extends RolloutVerb> {
  readonly row: OwnerRow;
  /** Absent before the first plan. */
  readonly rolloutState: RolloutStateRow | undefined;
  /** The stage runs in progress, by `stageRunKey`; read for verbs about single stage runs. */
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  /** When the request names a cluster: its entry in the fleet, its targets and its failed catch-up. For `exempt`: the windows. For `rollback`: the kept rollouts. */
  readonly rows: readonly Row[];
  /** When the request skips clusters: the targets that it names, by the `stageRunKey` of their stage run in progress. */
  readonly named: ReadonlyMap<string, readonly string[]>;
  readonly body: Body<Verb>;
  readonly act: Act;
  /** Who acts: a person, a role or a user, as `approverOf` tells them apart. */
  readonly approver: string;
  readonly now: Date;
  /** `SyncGroup payments/shop`. */
  readonly object: string;
}

/** @returns the operations after the verb; undefined when nothing changes. */
export type Decide<Verb extends RolloutVerb> = (facts: Facts<Verb>) => Operations | undefined;

/** The stage that a request names. @throws StarlingError `BadRequest` */
export function namedStage(
  name: string,
  { rolloutState, object }: Pick<Facts<RolloutVerb>, "rolloutState" | "object">,
): StageRecord {
  const stages = rolloutState?.stages ?? [];
  const stage = stages.find((one) => one.name === name);
  if (stage !== undefined) return stage;
  const names = stages.map((one) => one.name).join(", ");
  throw refusal("BadRequest", `stage: ${object} has no stage ${name}; it has ${names === "" ? "none yet" : names}`);
}
