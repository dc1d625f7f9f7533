/** The meaning of each field of a kind, as docs/spec describes it: for `explain` and for editors. */
import type { WritableKind } from "#shared/fleet/kinds/document.ts";

/** `KIND.path`; fields of all kinds are below `metadata`, and those of every selection of clusters below `selection`. */
const meanings: Readonly<Record<string, string>> = {
  "Cluster.metadata.labels": "what selections look at: a change may move the cluster in or out of groups",
  "Cluster.spec.access": "with eks: who Starling is to the cluster; left out: the role of its own function",
  "Cluster.spec.access.role": "the role by which Starling reaches the cluster",
  "Cluster.spec.access.role.name": "a role of the cluster's account, with its path where it has one",
  "Cluster.spec.eks": "exactly one of eks and endpoint; neither for one that is discovered",
  "Cluster.spec.eks.arn": "of the cluster; its address and authority are asked of EKS, its token is made from IAM",
  "Cluster.spec.endpoint": "exactly one of eks and endpoint: an API server by its address",
  "Cluster.spec.endpoint.caData": "PEM certificates in base64, as in a kubeconfig; left out: the public authorities",
  "Cluster.spec.endpoint.server": "https URL of the API server",
  "Cluster.spec.endpoint.tlsServerName": "name in the server's certificate, when it is not the URL's",
  "Cluster.spec.endpoint.token": "who Starling is to the cluster",
  "Cluster.spec.endpoint.token.secret": "name of a secret that is for this cluster",
  "Cluster.spec.kubeVersion":
    "what charts are told, and label `starling.dev/version`, where no ClusterDiscovery knows it",
  "Cluster.spec.values": "facts for templates, before those of ClusterValues: `{{ cluster.values.overlay }}`",
  "ClusterDiscovery.spec.access": "as of a Cluster",
  "ClusterDiscovery.spec.access.role": "the role by which Starling reaches each cluster",
  "ClusterDiscovery.spec.access.role.name": "a role of the cluster's account; its external id is the Cluster's own",
  "ClusterDiscovery.spec.eks": "which clusters of EKS",
  "ClusterDiscovery.spec.eks.accounts": "account ids; exactly one of accounts and organization",
  "ClusterDiscovery.spec.eks.organization": "all accounts of these units; exactly one of accounts and organization",
  "ClusterDiscovery.spec.eks.organization.account":
    "where the role may list the organization: its management account, or one that it delegated to",
  "ClusterDiscovery.spec.eks.organization.exclude": "account ids that are left out",
  "ClusterDiscovery.spec.eks.organization.ous":
    "units, or the root, with all that is below them; accounts that are not active are left out",
  "ClusterDiscovery.spec.eks.regions": "each of the accounts is looked at in each of them",
  "ClusterDiscovery.spec.eks.role": "who Starling is to the accounts",
  "ClusterDiscovery.spec.eks.role.name": "a role of each account, in the path `<installation>/discovery/`",
  "ClusterDiscovery.spec.eks.tags": "tags that a cluster must have; left out: every cluster",
  "ClusterDiscovery.spec.eks.tags.matchExpressions": "more that tags must be, all of them",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].key": "name of a tag",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].operator":
    "what its value must be: In or NotIn values, or whether it is there at all",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].values": "with In and NotIn",
  "ClusterDiscovery.spec.eks.tags.matchLabels": "as in a label selector",
  "ClusterDiscovery.spec.gone": "what becomes of clusters that are gone; left out: they stay registered",
  "ClusterDiscovery.spec.gone.action": "the Cluster is deleted, and what was assigned to it is forgotten",
  "ClusterDiscovery.spec.gone.after": "for how long their account has to say so, at every look",
  "ClusterDiscovery.spec.gone.maxPerDay":
    "clusters within 24 hours; a percentage is of what it has found, and rounds up",
  "ClusterDiscovery.spec.interval": "between two looks",
  "ClusterDiscovery.spec.labels": "labels that its Clusters get",
  "ClusterDiscovery.spec.labels.allowed":
    "label: a list of its values; any other value of the tag, or no tag, leaves the label as it was",
  "ClusterDiscovery.spec.labels.fromTags": "label: the tag whose value it gets",
  "ClusterDiscovery.spec.labels.set": "label: value, of every cluster",
  "ClusterDiscovery.spec.name":
    "of a cluster that is new, in small letters; it keeps its name for as long as it is registered",
  "ClusterDiscovery.spec.values": "values that its Clusters get",
  "ClusterDiscovery.spec.values.allowed":
    "value: a list of what its tag may say; anything else, or no tag, leaves the value as it was",
  "ClusterDiscovery.spec.values.fromTags":
    "tags that become values, under their own names; at least one of fromTags and ssm",
  "ClusterDiscovery.spec.values.ssm": "parameters of Parameter Store that become values",
  "ClusterDiscovery.spec.values.ssm.path":
    "`/starling/clusters/{{ eks.name }}`; also `{{ eks.accountId }}` and `{{ eks.region }}`",
  "ClusterValues.spec.clusters": "which clusters, by the labels that count for them",
  "ClusterValues.spec.priority": "from 0 to 1000; of two that set the same value of a cluster the higher one counts",
  "ClusterValues.spec.values": "names, and texts, numbers, true or false, lists or maps; empty is allowed",
  "Source.spec.git": "the repository that it follows",
  "Source.spec.git.credentials": "left out: anonymous",
  "Source.spec.git.credentials.kind": "what the secret holds: user and password, or a token",
  "Source.spec.git.credentials.secret": "name of a secret, whose form is in docs/spec/source.md",
  "Source.spec.git.ref": "exactly one of branch, tag, semver or commit; left out: the remote's HEAD",
  "Source.spec.git.ref.branch": "its newest commit",
  "Source.spec.git.ref.commit": "40 hexadecimal digits",
  "Source.spec.git.ref.semver": "a version range; the highest tag in it",
  "Source.spec.git.ref.tag": "the commit of this tag",
  "Source.spec.git.ref.tagPrefix": "with semver: tags begin with this, the version follows",
  "Source.spec.git.url": "`https://HOST/PATH`, without user, password, query or fragment",
  "Source.spec.interval": "how often the repository is asked, 10s to 24h; a webhook makes it instant",
  "Source.spec.paths": "folders that are made available; a change elsewhere is no new revision",
  "Sync.spec.cluster": "cannot change: delete the Sync and write another",
  "Sync.spec.render": "as in a SyncGroup's template",
  "SyncGroup.spec.clusters": "see Selecting clusters",
  "SyncGroup.spec.rollout": "how newer rollouts go through the clusters",
  "SyncGroup.spec.rollout.jitter": "starts are spread over this time, for those who want no waves",
  "SyncGroup.spec.rollout.maxConcurrent":
    "clusters of the group changing at once, over all stages; at least 1, 500 at most",
  "SyncGroup.spec.rollout.maxFailures": "failed clusters that a content bears in one stage; one more halts it there",
  "SyncGroup.spec.rollout.maxUnreachable":
    "unreachable clusters a stage may leave behind; they catch up when they answer",
  "SyncGroup.spec.rollout.progressDeadline":
    "without progress, from when its worker began until ready; after that it has failed",
  "SyncGroup.spec.rollout.stages":
    "in order; a cluster is in the first that selects it; the last one takes every other",
  "SyncGroup.spec.rollout.stages[].clusters": "see Selecting clusters; absent in the last stage, and only there",
  "SyncGroup.spec.rollout.stages[].maxConcurrent": "a smaller bound for this stage",
  "SyncGroup.spec.rollout.stages[].optional":
    "true: a rollout passes the first stage unverified while no cluster is in it",
  "SyncGroup.spec.rollout.stages[].name": "what it is known by; new names alone make no new stages",
  "SyncGroup.spec.rollout.supersede":
    "whether newer rollouts follow while older ones are in progress, or only once these end",
  "SyncGroup.spec.templates": "1 to 20; each becomes a Sync `GROUP.TEMPLATE` on every selected cluster",
  "SyncGroup.spec.templates[].apply": "how it is applied, and kept so",
  "SyncGroup.spec.templates[].apply.defaultNamespace":
    "where namespaced objects go that name no namespace; left out, such objects are refused",
  "SyncGroup.spec.templates[].apply.drift":
    "what to do about objects changed in the cluster: put back, only say so, or not look",
  "SyncGroup.spec.templates[].apply.interval": "how often an applied Sync is looked at again, 10s to 24h",
  "SyncGroup.spec.templates[].apply.prune":
    "delete what left the source; false keeps it recorded, to be pruned when it is true again",
  "SyncGroup.spec.templates[].commonMetadata": "on every object, over its own; not in templates of Pods",
  "SyncGroup.spec.templates[].commonMetadata.annotations": "annotations of every object",
  "SyncGroup.spec.templates[].commonMetadata.labels": "labels of every object",
  "SyncGroup.spec.templates[].components": "folders with a Component of kustomize, from the root of the repository",
  "SyncGroup.spec.templates[].createNamespace": "`targetNamespace` comes with the objects",
  "SyncGroup.spec.templates[].createNamespace.annotations": "annotations of the namespace",
  "SyncGroup.spec.templates[].createNamespace.labels": "labels of the namespace",
  "SyncGroup.spec.templates[].images": "other names, tags or digests of images",
  "SyncGroup.spec.templates[].images[].digest": "such as `sha256:…`",
  "SyncGroup.spec.templates[].images[].name": "as manifests have it, without tag and digest",
  "SyncGroup.spec.templates[].images[].newName": "the name that takes its place",
  "SyncGroup.spec.templates[].images[].newTag": "or `digest`",
  "SyncGroup.spec.templates[].name": "what it is called: its Syncs are GROUP.NAME",
  "SyncGroup.spec.templates[].namePrefix": "of every object, and where it is referred to",
  "SyncGroup.spec.templates[].nameSuffix": "put behind the name of each object",
  "SyncGroup.spec.templates[].overrides":
    "what the template is on some clusters: all that are for one, in order; later ones win",
  "SyncGroup.spec.templates[].overrides[].clusters": "see Selecting clusters",
  "SyncGroup.spec.templates[].overrides[].disabled": "they are not given the template; objects that one has of it stay",
  "SyncGroup.spec.templates[].parameters":
    "texts by name, with `{{ cluster.name }}` and its like; see specialisation.md",
  "SyncGroup.spec.templates[].patches": "see specialisation.md",
  "SyncGroup.spec.templates[].patches[].patch": "a strategic merge patch, or a list of JSON patch operations, as YAML",
  "SyncGroup.spec.templates[].patches[].target": "which objects; left out: the one that the patch names",
  "SyncGroup.spec.templates[].patches[].target.annotationSelector": "only objects with these annotations",
  "SyncGroup.spec.templates[].patches[].target.group": "only objects whose API group matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.kind": "a regular expression, as the name and the namespace",
  "SyncGroup.spec.templates[].patches[].target.labelSelector": "only objects with these labels",
  "SyncGroup.spec.templates[].patches[].target.name": "only objects whose name matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.namespace": "only objects whose namespace matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.version": "only objects whose API version matches this pattern",
  "SyncGroup.spec.templates[].path": "folder in the repository; see Paths",
  "SyncGroup.spec.templates[].render": "left out: helm for a chart, kustomize with a kustomization file, else plain",
  "SyncGroup.spec.templates[].render.helm": "a chart of the repository; see helm.md",
  "SyncGroup.spec.templates[].render.helm.apiVersions":
    "API versions that the chart is told of besides Kubernetes' own",
  "SyncGroup.spec.templates[].render.helm.crds":
    "the folder `crds`: left out, made where it is not there, or applied with the rest",
  "SyncGroup.spec.templates[].render.helm.hooks":
    "objects that Helm would run around an install or upgrade: run then (order.md), left out, or refused",
  "SyncGroup.spec.templates[].render.helm.kubeVersion":
    "left out: that of the cluster, where it is known, else the renderer's own",
  "SyncGroup.spec.templates[].render.helm.lookup": "a chart that looks into the cluster is refused, or finds nothing",
  "SyncGroup.spec.templates[].render.helm.releaseName": "left out: the name of the template or Sync",
  "SyncGroup.spec.templates[].render.helm.values":
    "go over the files and the chart's own; at most 65,536 bytes as JSON",
  "SyncGroup.spec.templates[].render.helm.valuesFrom": "files of values; a later one goes over an earlier one",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].optional": "whether it may be missing",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].path": "from the root of the repository; see Paths",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].source":
    "another Source of the same namespace, that has the file; left out: the template's",
  "SyncGroup.spec.templates[].render.kustomize":
    "the kustomize built into kubectl; remote bases and plugins are refused",
  "SyncGroup.spec.templates[].render.plain": "every YAML and JSON file of the folder, decoded as kubectl decodes it",
  "SyncGroup.spec.templates[].source": "a Source of the same namespace",
  "SyncGroup.spec.templates[].substitute":
    "whether $ with a NAME in braces, in the texts of objects, is the parameter of that name",
  "SyncGroup.spec.templates[].substitute.mode": "in their YAML, as Flux does it (specialisation.md)",
  "SyncGroup.spec.templates[].targetNamespace":
    "of every object that is in one; with `{{ cluster.name }}` and its like",
  "metadata.annotations": "kept, without meaning to Starling",
  "metadata.labels": "as in Kubernetes",
  "metadata.name": "its name: at most 63 characters of a-z, 0-9 and -",
  "metadata.namespace": "the Starling namespace, a tenant, that it is in; left out: that of -n or of the context",
  "selection.all": "every cluster there is",
  "selection.names": "clusters by name",
  "selection.notNames": "never these",
  "selection.selector": "by label, as in Kubernetes",
  "selection.selector.matchExpressions": "more that labels must be, all of them",
  "selection.selector.matchExpressions[].key": "name of a label",
  "selection.selector.matchExpressions[].operator":
    "what its value must be: In or NotIn values, or whether it is there at all",
  "selection.selector.matchExpressions[].values": "with In and NotIn",
  "selection.selector.matchLabels": "labels and the values that they must have",
};

const selection =
  /^spec\.(?:clusters|rollout\.stages\[\]\.clusters|templates\[\]\.overrides\[\]\.clusters)\.(?=selector|names|notNames|all)/;
const template = "SyncGroup.spec.templates[].";

/** @param path - in the form of `fieldsOf`: `spec.rollout.stages[].name`. */
export function meaningOf(kind: WritableKind, path: string): string | undefined {
  const inOverride = path.replace(/^spec\.templates\[\]\.overrides\[\]\./, "");
  const places = [
    `${kind}.${path}`,
    path,
    path.replace(selection, "selection."),
    // An override has the template's fields, and so has a Sync that a user writes.
    ...(kind === "SyncGroup" ? [`${template}${inOverride}`] : []),
    ...(kind === "Sync" ? [path.replace(/^spec\./, template)] : []),
  ];
  return places.map((place) => meanings[place]).find((text) => text !== undefined);
}
