import { foreignText } from "#shared/base/foreign-text.ts";
import type { Json } from "#shared/base/json.ts";
import { conditionsOf } from "#shared/kube/health/status.ts";
import { type KubeObject, listAt, stringAt, valueAt } from "#shared/kube/kube-object.ts";

const maxProblems = 3;
const maxDetailLength = 160;

/** Reasons of waiting that belong to an ordinary start, and are no problem. */
const ordinaryWaits = new Set(["ContainerCreating", "PodInitializing", ""]);

/**
 * Why the Pods of a workload are not ready, such as `Pod web-7d9f-x2k: container web ImagePullBackOff`. At most three,
 * the first of each distinct reason; empty when no Pod reports a problem.
 */
export function podProblems(pods: readonly KubeObject[]): readonly string[] {
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const pod of pods) {
    const problem = podProblem(pod);
    if (problem === undefined || seen.has(problem)) continue;
    seen.add(problem);
    problems.push(`Pod ${bounded(stringAt(pod, "metadata", "name") ?? "?")}: ${problem}`);
    if (problems.length === maxProblems) break;
  }
  return problems;
}

function podProblem(pod: KubeObject): string | undefined {
  for (const [list, role] of [
    ["initContainerStatuses", "init container"],
    ["containerStatuses", "container"],
  ] as const) {
    for (const container of listAt(pod, "status", list)) {
      const problem = containerProblem(container);
      if (problem !== undefined) return `${role} ${bounded(stringAt(container, "name") ?? "?")} ${problem}`;
    }
  }
  return schedulingProblem(pod);
}

function containerProblem(container: Json): string | undefined {
  const waiting = bounded(stringAt(container, "state", "waiting", "reason") ?? "");
  if (!ordinaryWaits.has(waiting)) {
    const detail =
      waiting === "CrashLoopBackOff" ? lastExit(container) : stringAt(container, "state", "waiting", "message");
    return detail ? `${waiting}: ${bounded(detail)}` : waiting;
  }
  const exitCode = exitCodeAt(container, "state");
  if (exitCode === undefined || exitCode === 0) return undefined;
  return `exited with code ${exitCode}${reasonSuffix(stringAt(container, "state", "terminated", "reason"))}`;
}

function lastExit(container: Json): string | undefined {
  const exitCode = exitCodeAt(container, "lastState");
  if (exitCode === undefined) return undefined;
  return `last exit code ${exitCode}${reasonSuffix(stringAt(container, "lastState", "terminated", "reason"))}`;
}

function exitCodeAt(container: Json, state: "state" | "lastState"): number | undefined {
  const exitCode = valueAt(container, state, "terminated", "exitCode");
  return typeof exitCode === "number" ? exitCode : undefined;
}

function reasonSuffix(reason: string | undefined): string {
  return reason === undefined || reason === "Error" ? "" : ` (${bounded(reason)})`;
}

function schedulingProblem(pod: KubeObject): string | undefined {
  for (const { type, status, reason, message } of conditionsOf(pod)) {
    if (type === "PodScheduled" && status === "False") return `${reason || "not scheduled"}: ${bounded(message)}`;
  }
  if (stringAt(pod, "status", "phase") === "Failed") {
    return `failed: ${bounded(stringAt(pod, "status", "message") ?? stringAt(pod, "status", "reason") ?? "")}`;
  }
  return undefined;
}

function bounded(text: string): string {
  return foreignText(text, maxDetailLength);
}
