import type { Json } from "#apiserver/json.ts";
import { valueAt } from "#apiserver/object-fields.ts";

type Draft = Record<string, Json>;

/** Sets the defaults of autoscaling/v1, which holds metrics in an annotation. */
export function defaultAutoscaler(draft: Draft): void {
  const given = { ...(valueAt(draft, "spec") as Draft | undefined) };
  const hasMetrics = valueAt(draft, "metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics") !== undefined;
  const share = hasMetrics ? {} : { targetCPUUtilizationPercentage: 80 };
  draft.spec = { minReplicas: 1, ...share, ...given };
}

const scaleUp = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
};
const scaleDown = { selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] };

/** Sets all scaling rules, as the server does as soon as an object gives one of them. */
export function defaultScaling(draft: Draft): void {
  draft.scaleUp = { ...scaleUp, ...(valueAt(draft, "scaleUp") as Draft | undefined) };
  draft.scaleDown = { ...scaleDown, ...(valueAt(draft, "scaleDown") as Draft | undefined) };
}
