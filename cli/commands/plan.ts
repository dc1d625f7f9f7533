import { planText, type ShownPlan } from "#cli/format/plan-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { type ChangeOptions, namespaceOf, readChanges } from "#cli/seeing/change-options.ts";
import { type Changes, type FleetView, fleetOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import { Renderer } from "#cli/seeing/renderer.ts";
import { assignedDigests, renderingsOf } from "#cli/seeing/renderings-of.ts";
import { subjectArgument } from "#cli/seeing/subject-argument.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { listPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { SyncGroupObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { type Forecast, forecast, type TargetChange } from "#shared/fleet/forecast/forecast.ts";
import { distinctInputs, wantedClusters } from "#shared/fleet/forecast/wanted-clusters.ts";
import { describeRevisions, relationOf } from "#shared/fleet/rollout/plan.ts";
import { objectDifferences } from "#shared/kube/object-differences.ts";

export interface PlanOptions extends ChangeOptions {
  readonly all?: boolean;
}

const mostGroups = 1000;

/** What would change where, against what clusters were assigned. Nothing is written, and no cluster is asked. */
export async function plan(session: Session, groups: readonly string[], options: PlanOptions): Promise<ExitReason> {
  const changes = await readChanges(session, options);
  const namespace = namespaceOf(session, changes);
  const targets = groups.length > 0 ? groups : await allGroups(session, namespace, changes);
  const plans: ShownPlan[] = [];
  for (const target of targets) {
    const { subject, template } = subjectArgument(target, namespace);
    if (template !== undefined)
      throw usageFailure(`${target} is one template; a plan is of its group`, `starling plan ${subject.name}`);
    plans.push(await planOf(session, await viewFleet(session, subject, changes)));
  }
  const { output } = session.options;
  if (output === "json" || output === "yaml")
    session.io.out(serialise({ kind: "PlanList", metadata: {}, items: plans }, output));
  else session.io.out(plans.map((one) => planText(one, options.all === true ? "all" : "some")).join("\n"));
  return plans.every(({ differences }) => differences.length === 0) ? "done" : "no";
}

async function allGroups(
  session: Session,
  namespace: string,
  { documents, from }: Changes,
): Promise<readonly string[]> {
  const written = documents.flatMap((document) =>
    document.kind === "SyncGroup" && document.metadata.namespace === namespace ? [document.metadata.name] : [],
  );
  // Of a group's own documents the plan is the group's; anything else may be about all of them.
  const isAbout = written.length > 0 && documents.every(({ kind }) => kind === "SyncGroup" || kind === "Source");
  if (isAbout || from === "documents alone") return written;
  const path = listPath("SyncGroup", namespace);
  const { items } = await readList<SyncGroupObject | UnreadableObject>(session, { path, limit: mostGroups });
  return [...new Set([...items.map(({ metadata }) => metadata.name), ...written])].sort();
}

async function planOf(session: Session, view: FleetView): Promise<ShownPlan> {
  const renderer = new Renderer(session, view);
  const wanted = wantedClusters(view.wanted, view.plan, fleetOf(view));
  const { distinct } = distinctInputs(wanted);
  const assigned = assignedDigests(view);
  // What was assigned somewhere is known by its digest: it is read where it is compared.
  const made = await renderer.made(distinct.filter(({ digest }) => !assigned.has(digest)));
  const renderings = new Map([
    ...assigned,
    ...[...made.renderings].map(([input, { digest }]) => [input, digest] as const),
  ]);
  const { stages } = relationOf(view.wanted).rollout;
  const found = forecast({
    wanted,
    fleet: view.clusters,
    renderings,
    failures: made.failures,
    stages: stages.map(({ name }) => name),
  });
  const objects = await renderingsOf(renderer, found);
  const differencesOf = ({ how, before, after }: TargetChange) => {
    if (how === "leave" || how === "options" || how === "fail") return {};
    const [old, now] = [objects.get(before ?? "") ?? [], objects.get(after ?? "") ?? []];
    return { objects: objectDifferences(old, now) };
  };
  return {
    kind: "Plan",
    namespace: view.subject.namespace,
    subject: `${view.subject.kind.toLowerCase()}/${view.subject.name}`,
    revision: describeRevisions(view.plan),
    ...found,
    differences: found.differences.map(({ clusters, changes }) => ({
      clusters,
      changes: changes.map((change) => ({ ...change, ...differencesOf(change) })),
    })),
    guards: guardsOf(view, found),
    unreadable: view.unreadable,
  };
}

function guardsOf({ present, subject, wanted }: FleetView, { differences }: Forecast): readonly string[] {
  const guards: string[] = [];
  const gone = differences.filter(({ changes }) => changes.some(({ how }) => how === "delete"));
  const clusters = new Set(gone.flatMap((one) => one.clusters));
  const syncs = gone.reduce(
    (all, one) => all + one.clusters.length * one.changes.filter(({ how }) => how === "delete").length,
    0,
  );
  if (syncs > 0)
    guards.push(`the objects of ${syncs} Syncs on ${clusters.size} clusters are deleted: starling apply asks first`);
  const { suspended } = present?.wanted.operations ?? {};
  if (suspended !== undefined)
    guards.push(
      `${subject.kind} ${subject.name} is suspended by ${suspended.by}: nothing is assigned until it is resumed`,
    );
  if (wanted.operations.deletion !== undefined) guards.push(`${subject.kind} ${subject.name} is being deleted`);
  return guards;
}
