import { keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import {
  conditionOf,
  createPod,
  enqueue,
  isDeleting,
  numberAt,
  podsOf,
  specOf,
  templateOf,
} from "#apiserver/controllers/workload.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";

export const jobResource = "batch/jobs";

/** Runs the Pods of a Job until enough of them have succeeded, then removes the Job after `ttlSecondsAfterFinished`. */
export function reconcileJob(context: ControllerContext, job: JsonObject): void {
  if (isDeleting(job)) return;
  const complete = conditionOf(job, "Complete");
  if (complete !== undefined) {
    removeAfterTtl(context, job);
    return;
  }
  if (specOf(job).suspend === true) return;
  const parallelism = numberAt(job, "spec", "parallelism");
  const desired = valueAt(job, "spec", "completions");
  const completions = typeof desired === "number" ? desired : 1;
  const pods = podsOf(context, job);
  const succeeded = pods.filter((pod) => stringAt(pod, "status", "phase") === "Succeeded").length;
  const active = pods.length - succeeded;
  for (let count = active; count < Math.min(parallelism, completions - succeeded); count += 1) {
    createPod(context, job, { template: templateOf(job), labels: {} });
  }
  const now = context.cluster.now();
  const startTime = valueAt(job, "status", "startTime") ?? now;
  const running = podsOf(context, job).length - succeeded;
  const counts = { ready: 0, terminating: 0, uncountedTerminatedPods: {}, ...(succeeded === 0 ? {} : { succeeded }) };
  if (succeeded < completions) {
    context.writeStatus(jobResource, job, {
      status: { startTime, ...(running === 0 ? {} : { active: running }), ...counts },
    });
    return;
  }
  const times = {
    lastProbeTime: now,
    lastTransitionTime: now,
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
  };
  const conditions = ["SuccessCriteriaMet", "Complete"].map((type) => ({ type, status: "True", ...times }));
  context.writeStatus(jobResource, job, { status: { startTime, completionTime: now, ...counts, conditions } });
}

function removeAfterTtl(context: ControllerContext, job: JsonObject): void {
  const ttl = valueAt(job, "spec", "ttlSecondsAfterFinished");
  if (typeof ttl !== "number") return;
  const due = Date.parse(stringAt(job, "status", "completionTime") ?? "") + ttl * 1_000;
  if (context.cluster.options.clock() >= due) context.remove(jobResource, job);
  else
    enqueue(context, { resource: jobResource, key: keyOf(job), atMs: due }, (object) => reconcileJob(context, object));
}
