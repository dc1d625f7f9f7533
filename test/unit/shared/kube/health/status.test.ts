import { expect, test } from "vitest";
import { type HealthStatus, worstOf } from "#shared/kube/health/status.ts";

test.each<readonly [readonly HealthStatus[], HealthStatus]>([
  [[], "Current"],
  [["Current", "Current"], "Current"],
  [["Current", "InProgress"], "InProgress"],
  [["InProgress", "Terminating"], "Terminating"],
  [["Terminating", "Failed", "InProgress"], "Failed"],
  [["Failed", "NotFound"], "NotFound"],
  [["NotFound", "Unknown", "Failed"], "Unknown"],
])("the worst status of %j is %s", (statuses, worst) => {
  expect(worstOf(statuses)).toBe(worst);
});
