import { scheduleProblem, timeZoneProblems } from "#apiserver/kinds/cron-schedule.ts";
import { all, notNegative, type Rule, type Strategy } from "#apiserver/kinds/strategy.ts";
import { jobSpecErrors } from "#apiserver/kinds/workload-strategy.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";
import { fieldErrors } from "#apiserver/status-error.ts";

const policies = ["Allow", "Forbid", "Replace"];

const scheduleErrors: Rule = (object, { live }) => {
  const schedule = stringAt(object, "spec", "schedule") ?? "";
  const field = "spec.schedule";
  if (schedule === "") return [fieldErrors.required(field)];
  const problem = scheduleProblem(schedule);
  const errors = problem === undefined ? [] : [fieldErrors.invalid(field, schedule, problem)];
  // An update may keep a time zone that an older server accepted.
  const hasZone = schedule.includes("TZ") && !(stringAt(live, "spec", "schedule") ?? "").includes("TZ");
  const detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
  return hasZone ? [...errors, fieldErrors.invalid(field, schedule, detail)] : errors;
};

const zoneErrors: Rule = (object, { live }) => {
  const zone = stringAt(object, "spec", "timeZone");
  if (zone === undefined || zone === stringAt(live, "spec", "timeZone")) return [];
  return timeZoneProblems(zone).map((problem) => fieldErrors.invalid("spec.timeZone", zone, problem));
};

const policyErrors: Rule = (object) => {
  const policy = stringAt(object, "spec", "concurrencyPolicy") ?? "";
  return policies.includes(policy) ? [] : [fieldErrors.unsupported("spec.concurrencyPolicy", policy, policies)];
};

/** A CronJob appends eleven characters to its name for the names of its Jobs. */
const nameErrors: Rule = (object, { live }) => {
  const name = nameOf(object);
  if (live !== undefined || name.length <= 52) return [];
  return [fieldErrors.invalid("metadata.name", name, "must be no more than 52 characters")];
};

/** Checks the template like a new Job. */
const templateErrors: Rule = (object, context) => {
  const spec = valueAt(object, "spec", "jobTemplate", "spec") ?? {};
  const errors = jobSpecErrors({ spec }, context).map((error) => ({
    ...error,
    field: `spec.jobTemplate.${error.field}`,
  }));
  if (valueAt(spec, "manualSelector") !== true) return errors;
  return [...errors, fieldErrors.unsupported("spec.jobTemplate.spec.manualSelector", true, ["nil", "false"])];
};

export const cronJobStrategy: Strategy = {
  validate: all(
    scheduleErrors,
    notNegative("spec.startingDeadlineSeconds"),
    zoneErrors,
    policyErrors,
    templateErrors,
    notNegative("spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit"),
    nameErrors,
  ),
};
