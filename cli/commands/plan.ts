import { planText, type ShownPlan } from "#cli/format/plan-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { type ChangeOptions, readChanges, refuseUnused } from "#cli/seeing/change-options.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { type FleetView, sourceNamesOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import { groupPlan } from "#cli/seeing/group-plan.ts";
import { groupWindows } from "#cli/seeing/group-windows.ts";
import { planTargets } from "#cli/seeing/plan-targets.ts";
import { stageAsks } from "#cli/seeing/stage-asks.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import type { Forecast, TargetChange } from "#shared/fleet/forecast/forecast.ts";
import { duplicateText, movesAmong, type TemplateSides } from "#shared/fleet/forecast/moved-objects.ts";
import { deletionsOf, type Leaving } from "#shared/fleet/forecast/object-guards.ts";
import { type WindowWait, windowWaits } from "#shared/fleet/forecast/window-waits.ts";
import { describeRevisions } from "#shared/fleet/rollout/desired-plan.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import { objectDifferences } from "#shared/kube/object-differences.ts";

export interface PlanOptions extends ChangeOptions {
  readonly cluster?: string;
  readonly all?: boolean;
}

/** Shows what would change on which clusters, compared with the assigned renderings. Writes nothing, and asks no cluster. */
export async function plan(session: Session, groups: readonly string[], options: PlanOptions): Promise<ExitReason> {
  const changes = { ...(await readChanges(session, options)), ...defined({ cluster: options.cluster }) };
  const plans: ShownPlan[] = [];
  const sources = new Set<string>();
  for (const { target, owner, template } of await planTargets(session, groups, changes)) {
    if (template !== undefined)
      throw usageFailure(`${target} is one template; plan its whole group`, `starling plan ${owner.name}`);
    const view = await viewFleet(session, owner, changes);
    for (const source of sourceNamesOf(view.desired)) sources.add(source);
    const plan = await planOf(session, view);
    const changing = new Set(plan.stages.filter((stage) => stage.changing > 0).map(({ name }) => name));
    const asks = (await stageAsks(session, view, changes)).filter(({ stage }) => changing.has(stage));
    plans.push({ ...plan, approvals: asks, windows: await waitsOf(session, view, { changes, plan }) });
  }
  refuseUnused(changes, sources);
  const { output } = session.options;
  if (isData(output)) session.io.out(serialise({ kind: "PlanList", metadata: {}, items: plans }, output));
  else session.io.out(plans.map((one) => planText(one, options.all === true ? "all" : "some")).join("\n"));
  if (plans.some(({ differences }) => differences.length > 0)) return "no";
  return plans.some(({ unreadable }) => unreadable.length > 0) ? "unknown" : "done";
}

type BarePlan = Omit<ShownPlan, "approvals" | "windows">;

async function planOf(session: Session, view: FleetView): Promise<BarePlan> {
  const { found, sidesOf } = await groupPlan(session, view);
  const templatesOf = (changes: readonly TargetChange[]) =>
    changes.map((change): TemplateSides => {
      const [before, after] = sidesOf(change) ?? [[], []];
      return { sync: change.sync, before, after };
    });
  const leaving: Leaving[] = [];
  const duplicates = new Set<string>();
  const differences = found.differences.map(({ clusters, changes }) => {
    const templates = templatesOf(changes);
    const moves = movesAmong(templates);
    for (const duplicate of moves.duplicates) duplicates.add(duplicateText(duplicate, clusters.length));
    return {
      clusters,
      changes: changes.map((change, index) => {
        const sides = templates[index];
        if (sides === undefined || sidesOf(change) === undefined) return change;
        const prune = change.how === "delete" || change.apply?.prune !== false;
        leaving.push({ clusters, objects: moves.leaving(sides), prune });
        return { ...change, objects: moves.named(change.sync, objectDifferences(sides.before, sides.after)) };
      }),
    };
  });
  return {
    kind: "Plan",
    namespace: view.owner.namespace,
    owner: `${view.owner.kind.toLowerCase()}/${view.owner.name}`,
    revision: describeRevisions(view.plan),
    ...found,
    differences,
    deletions: deletionsOf(leaving),
    guards: [...guardsOf(view, found), ...duplicates],
    unreadable: view.unreadable,
  };
}

/** The windows that the changed clusters would wait for. A plan that changes nothing reads none. */
async function waitsOf(
  session: Session,
  view: FleetView,
  { changes, plan }: { readonly changes: Changes; readonly plan: BarePlan },
): Promise<readonly WindowWait[]> {
  const changing = new Set(plan.differences.flatMap(({ clusters }) => clusters));
  if (changing.size === 0) return [];
  const windows = await groupWindows(session, view, changes);
  const { operations } = view.present?.desired ?? view.desired;
  const clusters = view.clusters.filter(({ name }) => changing.has(name));
  return windowWaits({ windows, operations }, clusters, session.io.now());
}

function guardsOf({ present, owner, desired }: FleetView, { differences }: Forecast): readonly string[] {
  const guards: string[] = [];
  const gone = differences.filter(({ changes }) => changes.some(({ how }) => how === "delete"));
  const clusters = new Set(gone.flatMap((one) => one.clusters));
  const syncs = gone.reduce(
    (all, one) => all + one.clusters.length * one.changes.filter(({ how }) => how === "delete").length,
    0,
  );
  if (syncs > 0)
    guards.push(
      `the objects of ${syncs} Syncs on ${clusters.size} clusters will be deleted; \`starling apply\` asks first`,
    );
  const { suspended } = present?.desired.operations ?? {};
  if (suspended !== undefined)
    guards.push(
      `${owner.kind} ${owner.name} is suspended by ${suspended.by}${endText(suspended)}: nothing is assigned before its end or a resume`,
    );
  if (desired.operations.deletion !== undefined) guards.push(`${owner.kind} ${owner.name} is being deleted`);
  return guards;
}
