import { digestOf } from "#shared/base/digest.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { failureOf } from "#shared/kube/engine/object-failure.ts";
import { annotationsOf, type KubeObject, managedFieldsOf, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { hasController } from "#shared/kube/membership.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";

/** Kinds whose objects come and go by themselves, or that nobody can put there. */
export function isFleeting({ group, kind, verbs }: KindInfo): boolean {
  const isEvent = kind === "Event" && (group === "" || group === "events.k8s.io");
  return isEvent || group === "metrics.k8s.io" || !verbs.includes("create");
}

type Names = Readonly<Record<string, ReadonlySet<string>>>;

/** By group and kind, what controllers of Kubernetes and Istio put into every Namespace, and again. */
const wellKnown: Names = {
  "/ServiceAccount": new Set(["default"]),
  "/ConfigMap": new Set(["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"]),
};
/** And those of OpenShift; elsewhere such names are people's own. */
const ofOpenShift: Names = {
  "/ServiceAccount": new Set(["default", "builder", "deployer"]),
  "/ConfigMap": wellKnown["/ConfigMap"] ?? new Set(),
  "rbac.authorization.k8s.io/RoleBinding": new Set([
    "system:deployers",
    "system:image-builders",
    "system:image-pullers",
  ]),
};
/** Served by every OpenShift, and by nothing else. */
const openShiftGroup = "project.openshift.io";

/** Where a controller writes the ServiceAccount of a Secret that it makes. */
const accountAnnotations = [
  "kubernetes.io/service-account.name",
  "openshift.io/internal-registry-auth-token.service-account",
];

/** @returns whether every Namespace of a cluster that serves these kinds holds such an object unasked. */
export function defaultObjectsOf(served: readonly GroupKind[]): (kind: GroupKind, object: KubeObject) => boolean {
  const names = served.some(({ group }) => group === openShiftGroup) ? ofOpenShift : wellKnown;
  return (kind, object) => {
    const key = keyOf(kind);
    const name = stringAt(object, "metadata", "name") ?? "";
    if (names[key]?.has(name)) return true;
    if (key === "/Secret") return isOfAccount(name, object, names["/ServiceAccount"] ?? new Set());
    return isOfService(key, object);
  };
}

/** A token or pull secret that a controller made for one of the accounts above; those made by hand have other names. */
function isOfAccount(name: string, object: KubeObject, accounts: ReadonlySet<string>): boolean {
  const [, account] = /^(.+)-(?:token|dockercfg)-[a-z0-9]{5}$/.exec(name) ?? [];
  if (account === undefined || !accounts.has(account)) return false;
  return accountAnnotations.some((annotation) => annotationsOf(object)[annotation] === account);
}

/** The addresses of a Service, by the controller that takes them away with it; others are written by hand. */
function isOfService(key: string, object: KubeObject): boolean {
  if (key === "discovery.k8s.io/EndpointSlice") return hasController(object);
  if (key !== "/Endpoints") return false;
  return managedFieldsOf(object).some(({ manager }) => manager === "kube-controller-manager");
}

/** What other controllers copy into every Namespace. */
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
/** Of these a copy is only what holds the same: other data would be lost. */
const dataKinds = new Set(["/ConfigMap", "/Secret"]);
/** The cluster's own Namespaces: what is in all of them, nobody put there for himself. */
const [first, ...others] = ["kube-node-lease", "kube-public", "kube-system", "default"] as const;

export interface Copied {
  /** The name of such an object; whether it is a copy, only the whole object tells. */
  isName(name: string): boolean;
  isCopy(object: KubeObject): boolean;
  /** How much of an object has to be read for `isCopy`. */
  readonly extent: { readonly metadataOnly?: true };
}

/** What somebody's controller puts into every Namespace, the cluster's own among them. */
export async function copiedEverywhere(client: ClusterClient, kind: KindInfo): Promise<Copied> {
  const extent = dataKinds.has(keyOf(kind)) ? {} : ({ metadataOnly: true } as const);
  const copies = await readCopies(client, kind, extent);
  return {
    isName: (name) => copies.has(name),
    isCopy: (object) => copies.get(stringAt(object, "metadata", "name") ?? "") === contentOf(object),
    extent,
  };
}

/** By name, what they hold. */
async function readCopies(
  client: ClusterClient,
  kind: KindInfo,
  extent: Copied["extent"],
): Promise<ReadonlyMap<string, string>> {
  if (!copiedKinds.has(keyOf(kind))) return new Map();
  try {
    const found = await client.list(kind, { namespace: first, ...extent });
    const copies = new Map(found.map((object) => [stringAt(object, "metadata", "name") ?? "", contentOf(object)]));
    for (const name of copies.keys()) {
      for (const namespace of others) {
        if (copies.has(name) && (await client.get(kind, { namespace, name }, { metadataOnly: true })) === undefined) {
          copies.delete(name);
        }
      }
    }
    return copies;
  } catch (error) {
    // Who may not read there takes every object for somebody's own.
    failureOf(error);
    return new Map();
  }
}

/** Of metadata alone that is nothing, and the same for all. */
function contentOf(object: KubeObject): string {
  const [type, data, binaryData] = ["type", "data", "binaryData"].map((field) => valueAt(object, field) ?? null);
  return digestOf([type ?? null, data ?? null, binaryData ?? null]);
}

function keyOf({ group, kind }: GroupKind): string {
  return `${group}/${kind}`;
}
