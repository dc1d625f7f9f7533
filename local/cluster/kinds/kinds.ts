import { builtinType, type TypeRef } from "#local/cluster/apply/schema.ts";
import { autoscalerIn } from "#local/cluster/kinds/autoscaler-versions.ts";
import type { CustomResource } from "#local/cluster/kinds/custom-kind.ts";
import type { JsonObject } from "#shared/base/json.ts";

/** A resource as the server serves it: one plural in one group. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
  /** metadata.generation counts the changes of the spec; "annotations" counts those of annotations too. */
  readonly generation: "none" | "spec" | "annotations";
  /** A finished DELETE answers with the object instead of a Status. */
  readonly deleteAnswersObject: boolean;
  /** A PUT without resourceVersion overwrites. */
  readonly unconditionalUpdate: boolean;
  /** A PUT of what is not there creates it. */
  readonly createOnUpdate: boolean;
  readonly typeIn: (version: string) => TypeRef | undefined;
  /** Set where versions differ: an object, or a part of one, in another of them. */
  readonly convert?: (object: JsonObject, apiVersion: string) => JsonObject;
  /** Set for custom resources. */
  readonly custom?: CustomResource;
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** The group and version of another API the subresource speaks. */
  readonly group?: string;
  readonly version?: string;
}

export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** The group and version of an apiVersion; "" is the core group. */
export function apiVersionParts(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: slash < 0 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const noCollectionDelete = allVerbs.filter((verb) => verb !== "deletecollection");
const readWrite = ["get", "patch", "update"];

const status = "status";
const scale = "scale";

/**
 * The built-in kinds: apiVersion, kind, plural, flags, short names, categories, subresources. Flags: `c` cluster-scoped,
 * `d` DELETE answers the object, `g` generation, `a` generation counts annotations, `n` no deletecollection, `p` PUT
 * creates, `r` PUT needs a resourceVersion, `v` is only created and answered, never stored. Of several versions the last
 * one is stored.
 */
const table = `
v1                               ConfigMap                         configmaps                         -     cm        -               -
v1                               Endpoints                         endpoints                          p     ep        -               -
v1                               Event                             events                             p     ev        -               -
v1                               LimitRange                        limitranges                        p     limits    -               -
v1                               Namespace                         namespaces                         cn    ns        -               finalize,status
v1                               Node                              nodes                              c     no        -               status
v1                               PersistentVolumeClaim             persistentvolumeclaims             d     pvc       -               status
v1                               PersistentVolume                  persistentvolumes                  cd    pv        -               status
v1                               Pod                               pods                               dg    po        all             attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status
v1                               PodTemplate                       podtemplates                       d     -         -               -
v1                               ReplicationController             replicationcontrollers             g     rc        all             scale,status
v1                               ResourceQuota                     resourcequotas                     d     quota     -               status
v1                               Secret                            secrets                            -     -         -               -
v1                               ServiceAccount                    serviceaccounts                    d     sa        -               token
v1                               Service                           services                           dp    svc       all             proxy,status
apps/v1                          ControllerRevision                controllerrevisions                -     -         -               -
apps/v1                          DaemonSet                         daemonsets                         a     ds        all             status
apps/v1                          Deployment                        deployments                        a     deploy    all             scale,status
apps/v1                          ReplicaSet                        replicasets                        g     rs        all             scale,status
apps/v1                          StatefulSet                       statefulsets                       g     sts       all             scale,status
batch/v1                         CronJob                           cronjobs                           g     cj        all             status
batch/v1                         Job                               jobs                               g     -         all             status
authentication.k8s.io/v1         SelfSubjectReview                 selfsubjectreviews                 cv    -         -               -
authorization.k8s.io/v1          LocalSubjectAccessReview          localsubjectaccessreviews          v     -         -               -
authorization.k8s.io/v1          SelfSubjectAccessReview           selfsubjectaccessreviews           cv    -         -               -
authorization.k8s.io/v1          SelfSubjectRulesReview            selfsubjectrulesreviews            cv    -         -               -
authorization.k8s.io/v1          SubjectAccessReview               subjectaccessreviews               cv    -         -               -
autoscaling/v1                   HorizontalPodAutoscaler           horizontalpodautoscalers           -     hpa       all             status
autoscaling/v2                   HorizontalPodAutoscaler           horizontalpodautoscalers           -     hpa       all             status
networking.k8s.io/v1             IngressClass                      ingressclasses                     cg    -         -               -
networking.k8s.io/v1             Ingress                           ingresses                          g     ing       -               status
networking.k8s.io/v1             NetworkPolicy                     networkpolicies                    g     netpol    -               -
policy/v1                        PodDisruptionBudget               poddisruptionbudgets               g     pdb       -               status
rbac.authorization.k8s.io/v1     ClusterRoleBinding                clusterrolebindings                cp    -         -               -
rbac.authorization.k8s.io/v1     ClusterRole                       clusterroles                       cp    -         -               -
rbac.authorization.k8s.io/v1     RoleBinding                       rolebindings                       p     -         -               -
rbac.authorization.k8s.io/v1     Role                              roles                              p     -         -               -
storage.k8s.io/v1                CSIDriver                         csidrivers                         cd    -         -               -
storage.k8s.io/v1                StorageClass                      storageclasses                     cd    sc        -               -
storage.k8s.io/v1                VolumeAttributesClass             volumeattributesclasses            cd    vac       -               -
scheduling.k8s.io/v1             PriorityClass                     priorityclasses                    cg    pc        -               -
coordination.k8s.io/v1           Lease                             leases                             p     -         -               -
discovery.k8s.io/v1              EndpointSlice                     endpointslices                     g     -         -               -
admissionregistration.k8s.io/v1  MutatingAdmissionPolicy           mutatingadmissionpolicies          cg    -         api-extensions  -
admissionregistration.k8s.io/v1  MutatingAdmissionPolicyBinding    mutatingadmissionpolicybindings    cg    -         api-extensions  -
admissionregistration.k8s.io/v1  MutatingWebhookConfiguration      mutatingwebhookconfigurations      cg    -         api-extensions  -
admissionregistration.k8s.io/v1  ValidatingAdmissionPolicy         validatingadmissionpolicies        cg    -         api-extensions  status
admissionregistration.k8s.io/v1  ValidatingAdmissionPolicyBinding  validatingadmissionpolicybindings  cg    -         api-extensions  -
admissionregistration.k8s.io/v1  ValidatingWebhookConfiguration    validatingwebhookconfigurations    cg    -         api-extensions  -
apiextensions.k8s.io/v1          CustomResourceDefinition          customresourcedefinitions          cgdr  crd,crds  api-extensions  status
apiregistration.k8s.io/v1        APIService                        apiservices                        cr    -         api-extensions  status
flowcontrol.apiserver.k8s.io/v1  FlowSchema                        flowschemas                        cg    -         -               status
flowcontrol.apiserver.k8s.io/v1  PriorityLevelConfiguration        prioritylevelconfigurations        cg    -         -               status
node.k8s.io/v1                   RuntimeClass                      runtimeclasses                     c     -         -               -
`;

/** Built-in kinds whose versions have fields of their own. */
const severalVersions: Readonly<
  Record<string, { readonly versions: readonly string[]; readonly convert: NonNullable<Kind["convert"]> }>
> = { "autoscaling/horizontalpodautoscalers": { versions: ["v1", "v2"], convert: autoscalerIn } };

/** Sub-resources that are no view of the object itself. Only `status`, `scale`, `finalize`, `token` are served; the rest are listed. */
const otherSubresources: Readonly<Record<string, Omit<Subresource, "name">>> = {
  attach: { kind: "PodAttachOptions", verbs: ["create", "get"] },
  binding: { kind: "Binding", verbs: ["create"] },
  eviction: { kind: "Eviction", verbs: ["create"], group: "policy", version: "v1" },
  exec: { kind: "PodExecOptions", verbs: ["create", "get"] },
  log: { kind: "", verbs: ["get"] },
  portforward: { kind: "PodPortForwardOptions", verbs: ["create", "get"] },
  finalize: { kind: "", verbs: ["update"] },
  token: { kind: "TokenRequest", verbs: ["create"], group: "authentication.k8s.io", version: "v1" },
  [scale]: { kind: "Scale", verbs: readWrite, group: "autoscaling", version: "v1" },
  [status]: { kind: "", verbs: readWrite },
};

const proxyVerbs = ["create", "delete", "get", "patch", "update"];

function subresourceOf(name: string, kind: string): Subresource {
  if (name === "proxy") return { name, kind: `${kind}ProxyOptions`, verbs: proxyVerbs };
  const other = otherSubresources[name] ?? { kind: "", verbs: readWrite };
  return { name, ...other, kind: other.kind === "" ? kind : other.kind };
}

/** The Go package of a group's types: `rbac` for `rbac.authorization.k8s.io`. */
export function goGroup(group: string): string {
  return group === "" ? "core" : group.replace(/\..*/, "");
}

/** The Go type of a built-in kind: `apps.v1.Deployment`. */
export function goTypeName({ group, version, kind }: Pick<Kind, "group" | "version" | "kind">): string {
  return `${goGroup(group)}.${version}.${kind}`;
}

function words(cell: string): string[] {
  return cell === "-" ? [] : cell.split(",");
}

function verbsOf(flags: string): readonly string[] {
  if (flags.includes("v")) return ["create"];
  return flags.includes("n") ? noCollectionDelete : allVerbs;
}

function generationOf(flags: string): Kind["generation"] {
  if (flags.includes("a")) return "annotations";
  return flags.includes("g") ? "spec" : "none";
}

function readRow(row: string): Kind {
  const [apiVersion = "", kind = "", plural = "", flags = "", ...lists] = row.split(/ +/);
  const [shortNames = "-", categories = "-", subresources = "-"] = lists;
  const { group, version } = apiVersionParts(apiVersion);
  const several = severalVersions[resourceKey(group, plural)];
  const versions = several?.versions ?? [version];
  const typeNames = new Map(versions.map((each) => [each, goTypeName({ group, version: each, kind })]));
  return {
    group,
    version,
    kind,
    plural,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    shortNames: words(shortNames),
    categories: words(categories),
    namespaced: !flags.includes("c"),
    verbs: verbsOf(flags),
    subresources: words(subresources).map((name) => subresourceOf(name, kind)),
    generation: generationOf(flags),
    deleteAnswersObject: flags.includes("d"),
    unconditionalUpdate: !flags.includes("r"),
    createOnUpdate: flags.includes("p"),
    ...(several === undefined ? {} : { convert: several.convert }),
    typeIn: (wanted) => {
      const name = typeNames.get(wanted);
      return name === undefined ? undefined : () => builtinType(name);
    },
  };
}

/** The built-in kinds, shared by every cluster. */
export const builtinKinds: readonly Kind[] = table.trim().split("\n").map(readRow);

/** What the subresource `token` of a ServiceAccount speaks. */
export const tokenRequestKind = readRow("authentication.k8s.io/v1 TokenRequest tokenrequests v");

/** `apps/deployments`: the key of a resource over all its versions. */
export function resourceKey(group: string, plural: string): string {
  return `${group}/${plural}`;
}

/** In the version that is stored. */
export const builtinKindsByResource: ReadonlyMap<string, Kind> = new Map(
  builtinKinds.map((kind) => [resourceKey(kind.group, kind.plural), kind]),
);

/** An object in another version of its kind. */
export function inVersion(kind: Pick<Kind, "convert">, object: JsonObject, apiVersion: string): JsonObject {
  const { convert } = kind;
  return convert === undefined || object.apiVersion === apiVersion ? object : convert(object, apiVersion);
}

/** The kind in the version that its objects are stored in. */
export function storedKind(kind: Kind): Kind {
  return kind.convert === undefined ? kind : (builtinKindsByResource.get(resourceKey(kind.group, kind.plural)) ?? kind);
}

export function hasSubresource(kind: Kind, name: string): boolean {
  return kind.subresources.some((subresource) => subresource.name === name);
}
