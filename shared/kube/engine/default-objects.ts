import { digestOf } from "#shared/base/digest.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { failureOf } from "#shared/kube/engine/object-failure.ts";
import { annotationsOf, type KubeObject, managedFieldsOf, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { hasController } from "#shared/kube/membership.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";

/** Kinds whose objects appear and disappear by themselves, or that nobody can create. */
export function isFleeting({ group, kind, verbs }: KindInfo): boolean {
  const isEvent = kind === "Event" && (group === "" || group === "events.k8s.io");
  return isEvent || group === "metrics.k8s.io" || !verbs.includes("create");
}

type Names = Readonly<Record<string, ReadonlySet<string>>>;

/**
 * By group and kind, the objects that controllers of Kubernetes and Istio create in every Namespace, and create again
 * after a deletion.
 */
const wellKnown: Names = {
  "/ServiceAccount": new Set(["default"]),
  "/ConfigMap": new Set(["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"]),
};
/** OpenShift's objects in addition. On other clusters, such names belong to users. */
const ofOpenShift: Names = {
  "/ServiceAccount": new Set(["default", "builder", "deployer"]),
  "/ConfigMap": wellKnown["/ConfigMap"] ?? new Set(),
  "rbac.authorization.k8s.io/RoleBinding": new Set([
    "system:deployers",
    "system:image-builders",
    "system:image-pullers",
  ]),
};
/** Every OpenShift serves this group, and nothing else does. */
const openShiftGroup = "project.openshift.io";

/** The annotations in which a controller names the ServiceAccount of a Secret that it creates. */
const accountAnnotations = [
  "kubernetes.io/service-account.name",
  "openshift.io/internal-registry-auth-token.service-account",
];

/** @returns whether an object is a default object, which every Namespace of a cluster with these kinds contains. */
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

/**
 * A token or pull secret that a controller created for one of the accounts above. Secrets created by hand have other
 * names.
 */
function isOfAccount(name: string, object: KubeObject, accounts: ReadonlySet<string>): boolean {
  const [, account] = /^(.+)-(?:token|dockercfg)-[a-z0-9]{5}$/.exec(name) ?? [];
  if (account === undefined || !accounts.has(account)) return false;
  return accountAnnotations.some((annotation) => annotationsOf(object)[annotation] === account);
}

/** The addresses of a Service. Its controller deletes them together with the Service; others are written by hand. */
function isOfService(key: string, object: KubeObject): boolean {
  if (key === "discovery.k8s.io/EndpointSlice") return hasController(object);
  if (key !== "/Endpoints") return false;
  return managedFieldsOf(object).some(({ manager }) => manager === "kube-controller-manager");
}

/** Kinds that other controllers copy into every Namespace. */
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
/** An object of these kinds is a copy only if its data is the same. Different data would be lost. */
const dataKinds = new Set(["/ConfigMap", "/Secret"]);
/** The cluster's own Namespaces. A user did not create an object that is in all of them. */
const [first, ...others] = ["kube-node-lease", "kube-public", "kube-system", "default"] as const;

export interface Copied {
  /** Whether an object of this name can be a copy. Only the whole object decides. */
  isName(name: string): boolean;
  isCopy(object: KubeObject): boolean;
  /** The part of an object that `isCopy` needs. */
  readonly extent: { readonly metadataOnly?: true };
}

/** Finds the objects that a controller copies into every Namespace, including the cluster's own. */
export async function copiedEverywhere(client: ClusterClient, kind: KindInfo): Promise<Copied> {
  const extent = dataKinds.has(keyOf(kind)) ? {} : ({ metadataOnly: true } as const);
  const copies = await readCopies(client, kind, extent);
  return {
    isName: (name) => copies.has(name),
    isCopy: (object) => copies.get(stringAt(object, "metadata", "name") ?? "") === contentOf(object),
    extent,
  };
}

/** By name, the content of the copies. */
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
    // Without permission to read there, every object counts as a user's own.
    failureOf(error);
    return new Map();
  }
}

/** From metadata alone, the digest of empty content, which is the same for all. */
function contentOf(object: KubeObject): string {
  const [type, data, binaryData] = ["type", "data", "binaryData"].map((field) => valueAt(object, field) ?? null);
  return digestOf([type ?? null, data ?? null, binaryData ?? null]);
}

function keyOf({ group, kind }: GroupKind): string {
  return `${group}/${kind}`;
}
