import { deepEqual } from "#local/cluster/deep-equal.ts";
import { apiServiceStrategy } from "#local/cluster/kinds/api-service-strategy.ts";
import { autoscalerStrategy } from "#local/cluster/kinds/autoscaler-strategy.ts";
import { budgetStrategy } from "#local/cluster/kinds/budget-strategy.ts";
import { crdErrors, prepareCrd } from "#local/cluster/kinds/crd-strategy.ts";
import { cronJobStrategy } from "#local/cluster/kinds/cron-job-strategy.ts";
import { configMapStrategy, secretStrategy } from "#local/cluster/kinds/data-strategy.ts";
import { ingressStrategy } from "#local/cluster/kinds/ingress-strategy.ts";
import type { Kind } from "#local/cluster/kinds/kind.ts";
import { networkPolicyStrategy } from "#local/cluster/kinds/network-policy-strategy.ts";
import { rbacStrategies } from "#local/cluster/kinds/rbac-strategy.ts";
import { allocateService, serviceErrors, serviceWarnings } from "#local/cluster/kinds/service-strategy.ts";
import { immutableAt, type Strategy, type StrategyContext } from "#local/cluster/kinds/strategy.ts";
import { workloadStrategies } from "#local/cluster/kinds/workload-strategy.ts";
import { withMetadata } from "#local/cluster/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#local/cluster/status-error.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

function prepareNamespace(object: JsonObject, { live }: StrategyContext): JsonObject {
  const spec = live === undefined ? { finalizers: ["kubernetes"] } : (live.spec ?? {});
  const status = live === undefined ? { phase: "Active" } : (live.status ?? {});
  return { ...object, spec, status };
}

/** Storage in use is protected until a controller lets it go (admission plugin StorageObjectInUseProtection). */
function protect(finalizer: string): NonNullable<Strategy["prepare"]> {
  return (object, { live }) => {
    const finalizers = listAt(object, "metadata", "finalizers");
    if (live !== undefined || finalizers.includes(finalizer)) return object;
    return withMetadata(object, { finalizers: [...finalizers, finalizer] });
  };
}

const protectVolume = protect("kubernetes.io/pv-protection");

/** A volume remembers since when it has its phase. */
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
