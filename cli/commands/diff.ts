import { diffText, type ShownDiff } from "#cli/format/diff-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { type ChangeOptions, readChanges, refuseUnused } from "#cli/seeing/change-options.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { type FleetView, sourceNamesOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import { groupPlan } from "#cli/seeing/group-plan.ts";
import { liveDiffs } from "#cli/seeing/live-diff.ts";
import type { OwnAccess } from "#cli/seeing/own-cluster.ts";
import { planTargets } from "#cli/seeing/plan-targets.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { TargetChange } from "#shared/fleet/forecast/forecast.ts";
import { describeRevisions } from "#shared/fleet/rollout/desired-plan.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { objectDifferences } from "#shared/kube/object-differences.ts";
import { describeObject, objectIdKey } from "#shared/kube/object-id.ts";

export interface DiffOptions extends ChangeOptions, OwnAccess {
  readonly cluster?: string;
  /** Default: `assigned` if changes are given, otherwise `live`. */
  readonly against?: "live" | "assigned";
}

/**
 * Compares object by object: a cluster with its assigned rendering, or the assigned rendering with changes. Writes nothing.
 * The exit codes are those of kubectl diff: 0 without differences, 1 with some, higher for errors.
 */
export async function diff(session: Session, targets: readonly string[], options: DiffOptions): Promise<ExitReason> {
  const { cluster } = options;
  const changes: Changes = { ...(await readChanges(session, options)), ...defined({ cluster }) };
  const hasChanges = changes.documents.length + changes.folders.size + changes.revisions.size > 0;
  const against = options.against ?? (hasChanges ? "assigned" : "live");
  if (targets.length === 0 && !hasChanges)
    throw usageFailure("an object, a group or -f is missing", "starling diff sync/NAME, or starling diff -f FILE");
  if (against === "live" && changes.from === "documents alone")
    throw usageFailure(
      "--offline does not go with --against live",
      "starling diff --against assigned, or no --offline",
    );
  const diffs: ShownDiff[] = [];
  const sources = new Set<string>();
  for (const { owner, template } of await planTargets(session, targets, changes)) {
    const view = await viewFleet(session, owner, changes);
    for (const source of sourceNamesOf(view.desired)) sources.add(source);
    const found =
      against === "live"
        ? await liveDiffs(session, {
            view,
            template,
            cluster,
            access: options,
            of: hasChanges ? "desired" : "assigned",
          })
        : await assignedDiffs(session, view, template);
    diffs.push(...found);
  }
  refuseUnused(changes, sources);
  print(session, diffs);
  if (diffs.some(({ unread }) => unread.length > 0)) return "unknown";
  return diffs.some(isDifferent) ? "no" : "done";
}

function isDifferent({ differences, refused, notes, against }: ShownDiff): boolean {
  return differences.length > 0 || refused.length > 0 || (against === "assigned" && notes.length > 0);
}

async function assignedDiffs(
  session: Session,
  view: FleetView,
  template: string | undefined,
): Promise<readonly ShownDiff[]> {
  const { found, sidesOf } = await groupPlan(session, view);
  const name = template === undefined ? undefined : `${view.owner.name}.${template}`;
  return found.differences.flatMap(({ clusters, changes }) =>
    changes
      .filter(({ sync }) => name === undefined || sync === name)
      .map((change) => {
        const [before, after] = sidesOf(change) ?? [[], []];
        const differences = objectDifferences(before, after);
        const old = new Map(before.map((object) => [objectIdKey(objectIdOf(object)), object]));
        const now = new Map(after.map((object) => [objectIdKey(objectIdOf(object)), object]));
        const sides = differences.map(({ id }) => {
          const [was, is] = [old.get(objectIdKey(id)), now.get(objectIdKey(id))];
          return { id, ...(was === undefined ? {} : { before: was }), ...(is === undefined ? {} : { after: is }) };
        });
        const revision = describeRevisions(view.plan);
        const nothing = { refused: [], unread: [], kept: [] };
        return {
          sync: change.sync,
          clusters,
          against: "assigned" as const,
          revision,
          differences,
          notes: notesOf(change),
          ...nothing,
          sides,
        };
      }),
  );
}

/** Changes that the objects do not show. */
function notesOf({ how, reason = "" }: TargetChange): readonly string[] {
  const said = {
    install: "the Sync is new on these clusters",
    change: undefined,
    options: "only the apply options change; the objects stay the same",
    delete: "the Sync and its objects are deleted",
    leave: "the Sync is removed; its objects stay",
    fail: `rendering failed: ${reason}`,
  }[how];
  return said === undefined ? [] : [said];
}

function print(session: Session, diffs: readonly ShownDiff[]): void {
  const { output } = session.options;
  if (isData(output)) {
    const items = diffs.map(({ sides: _, ...reported }) => reported);
    session.io.out(serialise({ kind: "DiffList", metadata: {}, items }, output));
    return;
  }
  if (diffs.length === 0) session.note("no differences");
  for (const one of diffs) {
    if (output === "name") {
      for (const { id, how } of one.differences)
        session.io.out(`${plainLine(`${one.sync} ${how} ${describeObject(id)}`)}\n`);
    } else session.io.out(diffText(one));
  }
}
