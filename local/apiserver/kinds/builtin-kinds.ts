import { builtinType } from "#apiserver/apply/schema.ts";
import { autoscalerIn } from "#apiserver/kinds/autoscaler-versions.ts";
import { apiVersionParts, goTypeName, type Kind, resourceKey, type Subresource } from "#apiserver/kinds/kind.ts";

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const noCollectionDelete = allVerbs.filter((verb) => verb !== "deletecollection");
const readWrite = ["get", "patch", "update"];

const status = "status";
const scale = "scale";

/**
 * The built-in kinds: apiVersion, kind, plural, flags, short names, categories, subresources. Flags: `c`
 * cluster-scoped, `d` DELETE answers with the object, `g` counts generations, `a` counts annotations as generations,
 * too, `n` has no deletecollection, `p` PUT creates, `r` PUT needs a resourceVersion, `v` is answered and never stored.
 * The last of several versions is the stored one.
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

/** Built-in kinds whose versions have different fields. */
const severalVersions: Readonly<
  Record<string, { readonly versions: readonly string[]; readonly convert: NonNullable<Kind["convert"]> }>
> = { "autoscaling/horizontalpodautoscalers": { versions: ["v1", "v2"], convert: autoscalerIn } };

/**
 * Subresources of another kind than their object. The server serves `status`, `scale`, `finalize` and `token`, and only
 * lists the rest.
 */
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
    typeIn: (desired) => {
      const name = typeNames.get(desired);
      return name === undefined ? undefined : () => builtinType(name);
    },
  };
}

/** The built-in kinds, shared by every cluster. */
export const builtinKinds: readonly Kind[] = table.trim().split("\n").map(readRow);

/** The kind of the subresource `token` of a ServiceAccount. */
export const tokenRequestKind = readRow("authentication.k8s.io/v1 TokenRequest tokenrequests v");

/** By resource, each in its stored version. */
export const builtinKindsByResource: ReadonlyMap<string, Kind> = new Map(
  builtinKinds.map((kind) => [resourceKey(kind.group, kind.plural), kind]),
);

/** The kind in the version in which its objects are stored. */
export function storedKind(kind: Kind): Kind {
  return kind.convert === undefined ? kind : (builtinKindsByResource.get(resourceKey(kind.group, kind.plural)) ?? kind);
}
