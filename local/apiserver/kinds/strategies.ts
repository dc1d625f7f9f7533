import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { apiServiceStrategy } from "#apiserver/kinds/api-service-strategy.ts";
import { autoscalerStrategy } from "#apiserver/kinds/autoscaler-strategy.ts";
import { budgetStrategy } from "#apiserver/kinds/budget-strategy.ts";
import { crdErrors, prepareCrd } from "#apiserver/kinds/crd-strategy.ts";
import { cronJobStrategy } from "#apiserver/kinds/cron-job-strategy.ts";
import { configMapStrategy, secretStrategy } from "#apiserver/kinds/data-strategy.ts";
import { ingressStrategy } from "#apiserver/kinds/ingress-strategy.ts";
import type { Kind } from "#apiserver/kinds/kind.ts";
import { networkPolicyStrategy } from "#apiserver/kinds/network-policy-strategy.ts";
import { rbacStrategies } from "#apiserver/kinds/rbac-strategy.ts";
import { allocateService, serviceErrors, serviceWarnings } from "#apiserver/kinds/service-strategy.ts";
import { immutableAt, type Strategy, type StrategyContext } from "#apiserver/kinds/strategy.ts";
import { workloadStrategies } from "#apiserver/kinds/workload-strategy.ts";
import { listAt, stringAt } from "#apiserver/object-fields.ts";
import { withMetadata } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

function prepareNamespace(object: JsonObject, { live }: StrategyContext): JsonObject {
  const spec = live === undefined ? { finalizers: ["kubernetes"] } : (live.spec ?? {});
  const status = live === undefined ? { phase: "Active" } : (live.status ?? {});
  return { ...object, spec, status };
}

/**
 * A finalizer protects storage in use until a controller removes it (admission plugin StorageObjectInUseProtection).
 */
function protect(finalizer: string): NonNullable<Strategy["prepare"]> {
  return (object, { live }) => {
    const finalizers = listAt(object, "metadata", "finalizers");
    if (live !== undefined || finalizers.includes(finalizer)) return object;
    return withMetadata(object, { finalizers: [...finalizers, finalizer] });
  };
}

const protectVolume = protect("kubernetes.io/pv-protection");

/** The status of a volume records since when it has its phase. */
function prepareVolume(object: JsonObject, context: StrategyContext): JsonObject {
  const { live, cluster } = context;
  const status = live?.status ?? { phase: "Pending", lastPhaseTransitionTime: cluster.now() };
  return { ...protectVolume(object, context), status };
}

function claimChanges(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined) return [];
  const bound = stringAt(live, "status", "phase") === "Bound";
  const fixed = ({ spec }: JsonObject) => {
    const { resources, volumeAttributesClassName, volumeName: _bound, ...rest } = isJsonObject(spec) ? spec : {};
    return bound ? rest : { ...rest, resources, volumeAttributesClassName };
  };
  if (deepEqual(fixed(object), fixed(live))) return [];
  const detail =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
  return [fieldErrors.forbidden("spec", detail)];
}

/** By `group/plural`. */
const strategies: Readonly<Record<string, Strategy>> = {
  ...workloadStrategies,
  ...rbacStrategies,
  "/namespaces": { prepare: prepareNamespace },
  "/configmaps": configMapStrategy,
  "/secrets": secretStrategy,
  "/services": { prepare: allocateService, validate: serviceErrors, warn: serviceWarnings },
  "/persistentvolumeclaims": { prepare: protect("kubernetes.io/pvc-protection"), validate: claimChanges },
  "/persistentvolumes": { prepare: prepareVolume },
  "autoscaling/horizontalpodautoscalers": autoscalerStrategy,
  "batch/cronjobs": cronJobStrategy,
  "policy/poddisruptionbudgets": budgetStrategy,
  "networking.k8s.io/ingresses": ingressStrategy,
  "networking.k8s.io/networkpolicies": networkPolicyStrategy,
  "storage.k8s.io/storageclasses": {
    validate: immutableAt("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
  },
  "apiregistration.k8s.io/apiservices": apiServiceStrategy,
  "apiextensions.k8s.io/customresourcedefinitions": { prepare: prepareCrd, validate: crdErrors },
};

export function strategyOf(kind: Kind): Strategy {
  return strategies[`${kind.group}/${kind.plural}`] ?? {};
}
