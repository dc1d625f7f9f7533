import { failureOf } from "#functions/apply/engine/object-failure.ts";
import type { ClusterClient, KindInfo } from "#shared/domain/cluster-client.ts";
import { annotationsOf, type KubeObject, stringAt } from "#shared/domain/kube-object.ts";
import type { GroupKind } from "#shared/domain/object-id.ts";

/** Kinds whose objects come and go by themselves, or that nobody can put there. */
export function isFleeting({ group, kind, verbs }: KindInfo): boolean {
  const slices = kind === "Endpoints" || kind === "EndpointSlice";
  return kind === "Event" || slices || group === "metrics.k8s.io" || !verbs.includes("create");
}

/** By group and kind, what controllers of Kubernetes, OpenShift and Istio put into every Namespace, and again. */
const wellKnown: Readonly<Record<string, ReadonlySet<string>>> = {
  "/ServiceAccount": new Set(["default", "builder", "deployer"]),
  "/ConfigMap": new Set(["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"]),
  "rbac.authorization.k8s.io/RoleBinding": new Set([
    "system:deployers",
    "system:image-builders",
    "system:image-pullers",
  ]),
};

/** Where a controller writes the ServiceAccount of a Secret that it makes. */
const accountAnnotations = [
  "kubernetes.io/service-account.name",
  "openshift.io/internal-registry-auth-token.service-account",
];

/** Whether every Namespace holds such an object without anybody having put it there. */
export function isFurniture(kind: GroupKind, object: KubeObject): boolean {
  const name = stringAt(object, "metadata", "name") ?? "";
  if (wellKnown[keyOf(kind)]?.has(name)) return true;
  return keyOf(kind) === "/Secret" && isOfDefaultAccount(name, object);
}

/** A token or pull secret that a controller made for one of the accounts above; those made by hand have other names. */
function isOfDefaultAccount(name: string, object: KubeObject): boolean {
  const [, account] = /^(.+)-(?:token|dockercfg)-[a-z0-9]{5}$/.exec(name) ?? [];
  if (account === undefined || !wellKnown["/ServiceAccount"]?.has(account)) return false;
  return accountAnnotations.some((annotation) => annotationsOf(object)[annotation] === account);
}

/** Without data of their own that could be lost. */
const copiedKinds = new Set([
  "/ConfigMap",
  "/LimitRange",
  "/ResourceQuota",
  "/Secret",
  "/ServiceAccount",
  "networking.k8s.io/NetworkPolicy",
  "rbac.authorization.k8s.io/Role",
  "rbac.authorization.k8s.io/RoleBinding",
]);
/** The cluster's own Namespaces: what is in all of them, nobody put there for himself. */
const [first, ...others] = ["kube-node-lease", "kube-public", "kube-system", "default"] as const;

/** The names of what somebody's controller puts into every Namespace, the cluster's own among them. */
export async function namesEverywhere(client: ClusterClient, kind: KindInfo): Promise<ReadonlySet<string>> {
  if (!copiedKinds.has(keyOf(kind))) return new Set();
  try {
    const found = await client.list(kind, { namespace: first, metadataOnly: true });
    const names = new Set(found.map((object) => stringAt(object, "metadata", "name") ?? ""));
    for (const name of names) {
      for (const namespace of others) {
        if (names.has(name) && (await client.get(kind, { namespace, name }, { metadataOnly: true })) === undefined) {
          names.delete(name);
        }
      }
    }
    return names;
  } catch (error) {
    // Who may not read there takes every object for somebody's own.
    failureOf(error);
    return new Set();
  }
}

function keyOf({ group, kind }: GroupKind): string {
  return `${group}/${kind}`;
}
