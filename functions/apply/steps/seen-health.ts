import { problemOfObject } from "#functions/apply/steps/object-problem.ts";
import type { SeenHealth } from "#shared/fleet/sync/observe.ts";
import type { HealthReport, UnreadyObject } from "#shared/kube/engine/check-health.ts";
import { worstOf } from "#shared/kube/health/status.ts";

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
