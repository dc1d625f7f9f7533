/** The health of an object, and the fields of an object that the rules of health read. */

import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { type KubeObject, valueAt } from "#shared/kube/kube-object.ts";
import { type AnyReason, type Reason, type ReportedReason, reportedReason } from "#shared/kube/reasons.ts";

/**
 * The statuses of kstatus (kubernetes-sigs/cli-utils, pkg/kstatus), and `Unknown` for an object that could not be read
 * or evaluated.
 */
export type HealthStatus = "Unknown" | "NotFound" | "Failed" | "Terminating" | "InProgress" | "Current";

export interface Health {
  readonly status: HealthStatus;
  /** CamelCase; absent for Current, Terminating and NotFound. */
  readonly reason?: AnyReason;
  readonly message: string;
}

/** The reason of a Job that ended without success. */
export const jobFailed = "JobFailed" satisfies Reason;

/** Worst first. */
const severity: readonly HealthStatus[] = ["Unknown", "NotFound", "Failed", "Terminating", "InProgress", "Current"];

/** Sorts the worst first. */
export function compareSeverity(a: HealthStatus, b: HealthStatus): number {
  return severity.indexOf(a) - severity.indexOf(b);
}

/** The worst status of the parts; `Current` without parts. */
export function worstOf(statuses: Iterable<HealthStatus>): HealthStatus {
  let worst: HealthStatus = "Current";
  for (const status of statuses) if (compareSeverity(status, worst) < 0) worst = status;
  return worst;
}

export function current(message: string): Health {
  return { status: "Current", message };
}

export function inProgress(reason: AnyReason, message: string): Health {
  return { status: "InProgress", reason, message };
}

export function failed(reason: AnyReason, message: string): Health {
  return { status: "Failed", reason, message };
}

export function unknown(reason: AnyReason, message: string): Health {
  return { status: "Unknown", reason, message };
}

/** A part of the object has a shape that the rules cannot read. Its health is then Unknown, and never guessed. */
export class HealthShapeError extends Error {
  override readonly name = "HealthShapeError";
}

export interface ObjectCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: ReportedReason;
  readonly message: string;
  readonly observedGeneration?: number;
}

/** The string at a dotted path; the default when it is missing or not a string. */
export function stringField(object: KubeObject, path: string, fallback: string): string {
  const value = valueAt(object, ...path.split("."));
  return typeof value === "string" ? value : fallback;
}

/** The integer at a dotted path; the default when it is missing or not an integer. */
export function integerField(object: KubeObject, path: string, fallback: number): number {
  const value = valueAt(object, ...path.split("."));
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" && Number.isInteger(value) ? value : fallback;
}

/** Longer than any text of a controller. The texts of a thousand objects are in memory at the same time. */
const maxTextLength = 1_000;

/** `status.conditions`; empty when missing. @throws HealthShapeError when it is not a list of conditions. */
export function conditionsOf(object: KubeObject): readonly ObjectCondition[] {
  const list = valueAt(object, "status", "conditions");
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw new HealthShapeError("status.conditions must be a list");
  return list.map((item: Json, index) => conditionFrom(item, index));
}

function conditionFrom(item: Json, index: number): ObjectCondition {
  if (!isJsonObject(item)) throw new HealthShapeError(`status.conditions[${index}] must be an object`);
  const { observedGeneration } = item;
  return {
    type: textMember(item.type, `status.conditions[${index}].type`),
    status: textMember(item.status, `status.conditions[${index}].status`),
    reason: reportedReason(textMember(item.reason, `status.conditions[${index}].reason`)),
    message: textMember(item.message, `status.conditions[${index}].message`),
    ...(typeof observedGeneration === "number" ? { observedGeneration } : {}),
  };
}

function textMember(value: Json | undefined, path: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new HealthShapeError(`${path} must be a string`);
  return foreignText(value, maxTextLength);
}
