/** The problems, the health and the warnings that a Sync reports about its objects. */

import { foreignList } from "#shared/base/foreign-text.ts";
import type { ObjectProblem, ObjectWarning } from "#shared/fleet/rows/sync-row.ts";
import type { SeenHealth } from "#shared/fleet/sync/observe.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import type { HealthReport, UnreadyObject } from "#shared/kube/engine/check-health.ts";
import type { PruneResult } from "#shared/kube/engine/prune-set.ts";
import { type Health, worstOf } from "#shared/kube/health/status.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

export function problemOfObject(id: ObjectId, health: Health): ObjectProblem {
  return { object: describeObject(id), reason: health.reason ?? health.status, message: health.message };
}

export function seenHealth(report: HealthReport): SeenHealth {
  const { total, ready, failed, worst } = report;
  return { total, ready, failed, worst, problems: report.notReady.map((object) => problemOfObject(object.id, object)) };
}

/** @param objects - all objects, ready or not. */
export function healthOf(objects: readonly UnreadyObject[]): SeenHealth {
  const unready = objects.filter(({ status }) => status !== "Current");
  return {
    total: objects.length,
    ready: objects.length - unready.length,
    failed: objects.filter(({ status }) => status === "Failed").length,
    worst: worstOf(objects.map(({ status }) => status)),
    problems: unready.map((object) => problemOfObject(object.id, object)),
  };
}

/** Joins two reports about different members. */
export function bothHealths(a: SeenHealth, b: SeenHealth): SeenHealth {
  return {
    total: a.total + b.total,
    ready: a.ready + b.ready,
    failed: a.failed + b.failed,
    worst: worstOf([a.worst, b.worst]),
    problems: [...a.problems, ...b.problems],
  };
}

/** Warnings of the API server, such as deprecated APIs and objections of a policy; each text once. */
export function objectWarnings({ objects }: Pick<ApplySetResult, "objects">): readonly ObjectWarning[] {
  const about = new Map<string, string[]>();
  for (const object of objects) {
    if (!("warnings" in object)) continue;
    const { id, warnings } = object;
    const isSecret = id.group === "" && id.kind === "Secret";
    // Webhooks quote values in their warnings.
    const reported = isSecret && warnings.length > 0 ? ["the server's words about a Secret are withheld"] : warnings;
    for (const message of reported) about.set(message, [...(about.get(message) ?? []), describeObject(id)]);
  }
  return [...about].map(([message, names]) => ({ object: foreignList(names, 1), message }));
}

/** Warnings about deletions, whatever their outcome. */
export function deletionWarningsOf(pruned: PruneResult): readonly ObjectWarning[] {
  if (pruned.outcome === "refused") return [];
  return pruned.notes.map(({ id, message }) => ({ object: describeObject(id), message }));
}
