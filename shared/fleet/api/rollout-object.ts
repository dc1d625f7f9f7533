/** Contents on their way, and their targets, as the API gives them. */
import { defined } from "#shared/base/defined.ts";
import { contentPhase, type RolloutPhase } from "#shared/fleet/api/content-phase.ts";
import {
  isDone,
  type RolloutObject,
  type RolloutStage,
  type RolloutStatus,
  type TargetItem,
} from "#shared/fleet/api/objects.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { reasonOf } from "#shared/fleet/rollout/judge.ts";
import { noTargets } from "#shared/fleet/rollout/legs.ts";
import { freezeText } from "#shared/fleet/rows/brake-row.ts";
import type { ContentRow, LegRow, TargetRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { heldBy, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface ContentOnItsWay {
  readonly content: ContentRow;
  /** Of the unit, in their order. */
  readonly stages: readonly UnitStage[];
  /** All of the content, of each stage the ones that were sealed anew, too. */
  readonly legs: readonly LegRow[];
}

export function rolloutObject({ content, stages, legs }: ContentOnItsWay): RolloutObject {
  const { subject, number, revision, trigger, plan, skipped, fromRevision, createdAt } = content;
  const newest = newestLegs(legs, stages);
  const phase = contentPhase(number, stages, newest);
  const shown = [...newest.map(legStage), ...stagesToCome(content, stages, { newest, phase: phase.phase })];
  const versions = legs.reduce((sum, { version }) => sum + version, content.version);
  return {
    apiVersion: ourApiVersion,
    kind: "Rollout",
    metadata: {
      name: `${subject.name}-${number}`,
      namespace: subject.namespace,
      uid: `${subject.kind}/${subject.name}/${number}`,
      resourceVersion: String(versions),
      creationTimestamp: createdAt,
    },
    spec: { subject, number, revision, trigger, plan, ...defined({ fromRevision, skipped }) },
    status: {
      ...phase,
      size: shown.reduce((sum, { size }) => sum + size, 0),
      stages: shown,
      ...endOf(phase.phase, newest),
      failures: newest.flatMap(({ stage, failures }) => failures.map((failure) => ({ stage, ...failure }))),
      transitions: newest
        .flatMap(({ stage, transitions }) => transitions.map((transition) => ({ stage, ...transition })))
        .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)),
    },
  };
}

/** Of each stage the leg that was sealed last, as the content went: by the stages of now, before them those that are gone. */
export function newestLegs(legs: readonly LegRow[], stages: readonly Pick<UnitStage, "name">[]): readonly LegRow[] {
  const newest = new Map<string, LegRow>();
  for (const leg of legs) if (leg.seal >= (newest.get(leg.stage)?.seal ?? 0)) newest.set(leg.stage, leg);
  const place = ({ stage }: LegRow) => stages.findIndex(({ name }) => name === stage);
  return [...newest.values()].sort((a, b) => place(a) - place(b) || (a.startedAt < b.startedAt ? -1 : 1));
}

function legStage(leg: LegRow): RolloutStage {
  const { stage: name, size, counts, phase, seal, reason, message, preexistingFailures, startedAt } = leg;
  const { endedAt, supersededBy } = leg;
  return {
    name,
    size,
    counts,
    phase,
    seal,
    reason,
    message,
    preexistingFailures,
    startedAt,
    ...defined({ endedAt, supersededBy }),
  };
}

/** Behind the last one that it has reached, while it may come any further. */
function stagesToCome(
  { number }: ContentRow,
  stages: readonly UnitStage[],
  { newest, phase }: { readonly newest: readonly LegRow[]; readonly phase: RolloutPhase },
): readonly RolloutStage[] {
  if (phase === "Complete" || phase === "Superseded") return [];
  const reached = stages.findLastIndex(({ name, on }) => on === number || newest.some(({ stage }) => stage === name));
  return stages.slice(reached + 1).map(({ name, members }) => ({
    name,
    phase: "Waiting",
    size: members,
    counts: { ...noTargets, Waiting: members },
  }));
}

function endOf(phase: RolloutPhase, newest: readonly LegRow[]): Pick<RolloutStatus, "endedAt" | "supersededBy"> {
  if (phase !== "Complete" && phase !== "Superseded") return {};
  const last = newest.findLast(({ endedAt }) => endedAt !== undefined);
  const supersededBy = phase === "Superseded" ? last?.supersededBy : undefined;
  return defined({ endedAt: last?.endedAt, supersededBy });
}

/** What is known of one target. */
export interface FoundTarget extends Pick<TargetRow, "cluster" | "order" | "state" | "reason" | "attempts"> {
  readonly stage: string;
  readonly assignedAt?: string;
  readonly endedAt?: string;
  readonly preexisting?: true;
}

/** @param syncs the Syncs of the subject on this cluster, for what runs there. */
export function targetItem(target: FoundTarget, syncs: readonly SyncRow[]): TargetItem {
  const { cluster, order, stage, state, reason, attempts, assignedAt, endedAt, preexisting } = target;
  const behind = syncs.find((sync) => sync.observed?.phase !== "Ready") ?? syncs[0];
  const revision = behind?.observed?.applied?.revision;
  const assigned = syncs.filter((sync) => attempts[sync.name] === sync.desired.attempt);
  const held = assigned.map(heldBy).find((one) => one !== undefined);
  const tried = state === "Applying" ? assigned.find(isRetrying) : undefined;
  const troubled = tried ?? assigned.find((sync) => sync.observed?.phase !== "Ready") ?? assigned[0];
  const why = tried?.observed === undefined ? reason : reasonOf(tried.observed);
  return {
    cluster,
    order,
    stage,
    state,
    reason: held === undefined || isDone(state) ? why : freezeText(held),
    ...(tried === undefined || held !== undefined ? {} : { retrying: true as const }),
    ...defined({ revision, assignedAt, endedAt, preexisting, sync: troubled?.name }),
  };
}

/** Of the newest assignment. */
function isRetrying({ desired, observed }: SyncRow): boolean {
  return observed?.attempt === desired.attempt && observed.phase === "Retrying";
}
