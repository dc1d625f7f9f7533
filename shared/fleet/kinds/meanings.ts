/** The meaning of each field of a kind, as docs/spec describes it: for `explain` and for editors. */
import type { WritableKind } from "#shared/fleet/kinds/document.ts";

/** `KIND.path`; fields of all kinds are below `metadata`, and those of every selection of clusters below `selection`. */
const meanings: Readonly<Record<string, string>> = {
  "Cluster.metadata.labels": "selections use them: a change may move the cluster in or out of groups",
  "Cluster.spec.access":
    "how Starling reaches the cluster; left out: by the role of its own function, from the zone `home`",
  "Cluster.spec.access.role": "with eks: the role by which Starling reaches the cluster",
  "Cluster.spec.access.role.name": "a role of the cluster's account, with its path where it has one",
  "Cluster.spec.access.zone":
    "the zone whose workers reach the cluster; left out: `home`, or that of a ClusterDiscovery",
  "Cluster.spec.eks": "exactly one of eks and endpoint; neither for one that is discovered",
  "Cluster.spec.eks.arn": "ARN of the cluster; EKS gives its address and authority, and IAM its token",
  "Cluster.spec.eks.endpointOverride":
    "another address of the API server than EKS names; its authority stays that of EKS",
  "Cluster.spec.eks.endpointOverride.server": "https URL with a host and perhaps a port",
  "Cluster.spec.eks.endpointOverride.tlsServerName":
    "name in the certificate of the API server; left out: the host that EKS names",
  "Cluster.spec.endpoint": "exactly one of eks and endpoint: an API server by its address",
  "Cluster.spec.endpoint.caData": "PEM certificates in base64, as in a kubeconfig; left out: the public authorities",
  "Cluster.spec.endpoint.server": "https URL of the API server",
  "Cluster.spec.endpoint.tlsServerName": "name in the server's certificate, when it is not the URL's",
  "Cluster.spec.endpoint.token": "how Starling authenticates to the cluster",
  "Cluster.spec.endpoint.token.secret": "name of a secret that is for this cluster",
  "Cluster.spec.kubeVersion":
    "the version that charts get, and label `starling.dev/version`, if no ClusterDiscovery knows it",
  "Cluster.spec.values": "facts for templates, before those of ClusterValues: `{{ cluster.values.overlay }}`",
  "ClusterDiscovery.spec.access": "see Cluster.spec.access",
  "ClusterDiscovery.spec.access.role": "the role by which Starling reaches each cluster",
  "ClusterDiscovery.spec.access.role.name": "a role of the cluster's account; its external id is the Cluster's own",
  "ClusterDiscovery.spec.access.zone":
    "the zone whose workers reach clusters that zonesByVpc does not name; left out: the zone that names the VPC, or `home`",
  "ClusterDiscovery.spec.access.zonesByVpc": "zones by the id of the VPC that EKS names for the cluster",
  "ClusterDiscovery.spec.eks": "the clusters of EKS that are registered",
  "ClusterDiscovery.spec.eks.accounts": "account ids; exactly one of accounts and organization",
  "ClusterDiscovery.spec.eks.organization": "all accounts of these units; exactly one of accounts and organization",
  "ClusterDiscovery.spec.eks.organization.account":
    "an account whose role may list the organization: the management account, or a delegated administrator",
  "ClusterDiscovery.spec.eks.organization.exclude": "account ids that are left out",
  "ClusterDiscovery.spec.eks.organization.ous":
    "ids of organizational units, or of the root, with all accounts below; only active accounts count",
  "ClusterDiscovery.spec.eks.regions": "regions in which each of the accounts is scanned",
  "ClusterDiscovery.spec.eks.role": "the role by which Starling reads each account",
  "ClusterDiscovery.spec.eks.role.name": "a role of each account, in the path `<installation>/discovery/`",
  "ClusterDiscovery.spec.eks.tags": "tags that a cluster must have; left out: every cluster",
  "ClusterDiscovery.spec.eks.tags.matchExpressions": "further conditions on tags; all must hold",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].key": "name of a tag",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].operator":
    "In or NotIn: the value must, or must not, be one of values; Exists or DoesNotExist",
  "ClusterDiscovery.spec.eks.tags.matchExpressions[].values": "the values for In and NotIn",
  "ClusterDiscovery.spec.eks.tags.matchLabels": "as in a label selector",
  "ClusterDiscovery.spec.gone": "how to treat clusters that EKS no longer has; left out: they stay registered",
  "ClusterDiscovery.spec.gone.action": "Forget: delete the Cluster, and forget its assignments",
  "ClusterDiscovery.spec.gone.after": "for how long each scan must find a cluster gone before it is forgotten",
  "ClusterDiscovery.spec.gone.maxPerDay":
    "largest number of clusters within 24 hours; a percentage is of the clusters that it has found, rounded up",
  "ClusterDiscovery.spec.interval": "time between two scans",
  "ClusterDiscovery.spec.labels": "labels that its Clusters get",
  "ClusterDiscovery.spec.labels.allowed":
    "for each label a list of its values; any other value of the tag, or no tag, leaves the label as it was",
  "ClusterDiscovery.spec.labels.fromTags": "for each label the tag whose value it gets",
  "ClusterDiscovery.spec.labels.set": "labels and values that every cluster gets",
  "ClusterDiscovery.spec.name":
    "template for the name of a new cluster, in small letters; a cluster keeps its name while it is registered",
  "ClusterDiscovery.spec.values": "values that its Clusters get",
  "ClusterDiscovery.spec.values.allowed":
    "for each value a list of the allowed texts of its tag; any other text, or no tag, leaves the value as it was",
  "ClusterDiscovery.spec.values.fromTags":
    "tags that become values, under their own names; at least one of fromTags and ssm",
  "ClusterDiscovery.spec.values.ssm": "parameters of Parameter Store that become values",
  "ClusterDiscovery.spec.values.ssm.path":
    "`/starling/clusters/{{ eks.name }}`; also `{{ eks.accountId }}` and `{{ eks.region }}`",
  "ClusterValues.spec.clusters": "the clusters that get the values, by their effective labels",
  "ClusterValues.spec.priority": "from 0 to 1000; if two set the same value of a cluster, the higher priority wins",
  "Window.spec.clusters":
    "the clusters whose changes wait for the window, by their effective labels; without them, every cluster",
  "Window.spec.groups":
    "only changes of these SyncGroups, and of these Syncs without a group, wait; without them, all; at least one of clusters and groups",
  "Window.spec.groups.selector": "groups by their own labels, as in Kubernetes",
  "Window.spec.groups.names": "namespace and name of each, such as payments/shop",
  "Window.spec.groups.namespaces": "every group of these namespaces",
  "Window.spec.allow": "times at which changes may start; together a union; without any, every time is allowed",
  "Window.spec.allow[].cron":
    "when the time begins: minute, hour, day, month and weekday, by the clock of the time zone",
  "Window.spec.allow[].duration": "how long it lasts, in elapsed time, from 1m to 744h",
  "Window.spec.allow[].timeZone": "the zone of `cron`, such as Europe/London or UTC",
  "Window.spec.allow[].start": "instead of `cron`: when it begins, once, such as 2026-12-24T00:00:00Z",
  "Window.spec.allow[].end": "when it ends; needed with `start`",
  "Window.spec.deny": "times at which no change starts, also where `allow` allows it",
  "Window.spec.deny[].cron": "as in `allow`",
  "Window.spec.deny[].duration": "as in `allow`",
  "Window.spec.deny[].timeZone": "as in `allow`",
  "Window.spec.deny[].start": "as in `allow`",
  "Window.spec.deny[].end": "as in `allow`",
  "ClusterValues.spec.values": "values by name: texts, numbers, true or false, lists or maps; may be empty",
  "Source.spec.archive": "a tar.gz on a web server; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.archive.credentials": "as in git",
  "Source.spec.archive.credentials.kind": "as in git",
  "Source.spec.archive.credentials.secret": "as in git",
  "Source.spec.archive.sha256": "checksum of the file, as `sha256sum` prints it; another file is refused",
  "Source.spec.archive.url": "`https://HOST/PATH`, without user and password",
  "Source.spec.external": "versions that CI pushes; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.external.principals": "ARNs of the roles and users that may push, with * for any part of a name",
  "Source.spec.external.version": "the Source stays at this version; left out: the newest pushed one",
  "Source.spec.s3": "the objects of a bucket; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.s3.bucket": "its name, which the setting sourceBuckets must have",
  "Source.spec.s3.prefix": "the folder that counts; paths are relative to it",
  "Source.spec.s3.region": "left out: the region of the installation",
  "Source.spec.git": "the repository that the Source follows; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.git.credentials": "left out: anonymous; SSH needs them",
  "Source.spec.git.credentials.kind":
    "the content of the secret: user and password, a token, a certificate, a key for SSH, or a GitHub App; or `aws`: no secret",
  "Source.spec.git.credentials.secret": "name of a secret, whose form is in docs/spec/source.md; `aws` has none",
  "Source.spec.git.ref": "exactly one of branch, tag, semver, name or commit; left out: the remote's HEAD",
  "Source.spec.git.ref.branch": "its newest commit",
  "Receiver.spec.events":
    "only these events of the provider are followed; left out: every one that can change a Source",
  "Receiver.spec.google": "for gcr: the token with which Pub/Sub pushes must say this",
  "Receiver.spec.google.audience": "the audience of the push subscription",
  "Receiver.spec.google.email": "the service account of the push subscription",
  "Receiver.spec.oidc": "for generic-oidc: the tokens of OpenID Connect that prove a sender",
  "Receiver.spec.oidc.audience": "the audience that the sender asks its token for",
  "Receiver.spec.oidc.claims": "regular expressions of RE2 by the claim whose whole text they must match",
  "Receiver.spec.oidc.issuer": "the URL of the issuer, as its tokens name it in `iss`",
  "Receiver.spec.provider": "the kind of sender; it decides how a delivery is verified and read",
  "Receiver.spec.secrets":
    "one or two secrets, any of which the sender may know; each is JSON with a `token`; generic-oidc and gcr have none",
  "Receiver.spec.sources":
    "Sources of the same namespace that a delivery polls, as far as it can change them: names, or `{selector: ...}`",
  "Receiver.spec.sources[].selector": "Sources by label, as in Kubernetes",
  "Source.spec.git.ref.commit": "40 hexadecimal digits",
  "Source.spec.git.ref.name": "a reference of any kind by its full name, such as refs/pull/420/head",
  "Source.spec.git.ref.semver": "a version range; the highest tag in it",
  "Source.spec.git.ref.tag": "the commit of this tag",
  "Source.spec.git.ref.tagFilter": "with semver: only tags that this regular expression matches count",
  "Source.spec.git.ref.tagPrefix": "with semver: tags begin with this, the version follows",
  "Source.spec.git.url":
    "`https://HOST/PATH` without a user, or `ssh://USER@HOST/PATH`; no password, query or fragment",
  "Source.spec.git.verify": "only what is signed with a trusted key becomes an artifact; left out: nothing is verified",
  "Source.spec.git.verify.keys": "public keys of SSH or OpenPGP as text; a signature of any of them counts",
  "Source.spec.git.verify.mode": "whose signature counts: of the commit, of the annotated tag, or of both",
  "Source.spec.helm": "a chart that is published in versions; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.helm.chart": "name of the chart",
  "Source.spec.helm.credentials": "as in git",
  "Source.spec.helm.credentials.kind": "as in oci",
  "Source.spec.helm.credentials.secret": "as in git",
  "Source.spec.helm.ref": "which version; left out: the highest one that is no prerelease",
  "Source.spec.helm.ref.semver": "a version range; the highest version in it",
  "Source.spec.helm.url": "`https://HOST/PATH` of a Helm repository, or `oci://HOST/PATH` without the chart's name",
  "Source.spec.helm.verify": "only a chart that is signed becomes an artifact; left out: nothing is verified",
  "Source.spec.helm.verify.cosign": "as in oci; only for charts of a registry",
  "Source.spec.helm.verify.cosign.identities": "as in oci",
  "Source.spec.helm.verify.cosign.identities[].issuer": "as in oci",
  "Source.spec.helm.verify.cosign.identities[].subject": "as in oci",
  "Source.spec.helm.verify.cosign.keys": "as in oci",
  "Source.spec.helm.verify.cosign.trustedRoot": "as in oci",
  "Source.spec.helm.verify.provenance":
    "the file `.prov` that `helm package --sign` writes must be signed with a trusted key",
  "Source.spec.helm.verify.provenance.keys": "public keys of OpenPGP as text; a signature of any of them counts",
  "Source.spec.ignore": "files that are left out: patterns of gitignore; they win over the files `.sourceignore`",
  "Source.spec.oci": "an artifact of files in a registry; exactly one of git, helm, oci, s3, archive and external",
  "Source.spec.oci.credentials": "as in git",
  "Source.spec.oci.credentials.kind":
    "the content of the secret: user and password, a token, a certificate, or Docker's configuration; or `aws`: no secret",
  "Source.spec.oci.credentials.secret": "as in git",
  "Source.spec.oci.mediaType": "the layer with this media type holds the files; left out: a usual one",
  "Source.spec.oci.ref": "exactly one of tag, semver and digest; left out: the tag `latest`",
  "Source.spec.oci.ref.digest": "always the same artifact",
  "Source.spec.oci.ref.semver": "a version range; the highest tag in it",
  "Source.spec.oci.ref.tag": "the artifact of this tag, also when it moves",
  "Source.spec.oci.ref.tagFilter": "as in git",
  "Source.spec.oci.url": "`oci://HOST/REPOSITORY`, without a tag",
  "Source.spec.oci.verify": "only an artifact that is signed is used; left out: nothing is verified",
  "Source.spec.oci.verify.cosign": "whose cosign signatures count: exactly one of keys and identities",
  "Source.spec.oci.verify.cosign.identities": "signers that a certificate may name; any of them counts",
  "Source.spec.oci.verify.cosign.identities[].issuer":
    "regular expression for the whole URL of the service that knows the signer",
  "Source.spec.oci.verify.cosign.identities[].subject":
    "regular expression for the whole name of the signer, such as the URL of a workflow",
  "Source.spec.oci.verify.cosign.keys": "public keys in PEM; a signature of any of them counts",
  "Source.spec.oci.verify.cosign.trustedRoot":
    "with identities: the text of `trusted_root.json`, which has the certificates of the authorities",
  "Source.spec.immutableTags":
    "a tag or version that is at another digest than before is refused; left out: it is followed",
  "Source.spec.retain":
    "this many of the newest revisions stay stored; left out: those of the last 30 days, and what is in use",
  "Source.spec.include":
    "files of other Sources of the namespace that are added to the artifact; a change of theirs makes a new one",
  "Source.spec.include[].fromPath": "the folder or file of its artifact; left out: everything",
  "Source.spec.include[].source": "name of the Source",
  "Source.spec.include[].toPath":
    "the folder for its files, which nothing else may have files in; left out: the name of the Source",
  "Source.spec.interval": "how often the repository is polled, 10s to 24h; a webhook starts a poll at once",
  "Source.spec.paths": "folders that templates may use; a change elsewhere makes no new revision",
  "Sync.spec.cluster": "cannot change: delete the Sync and write another",
  "Sync.spec.render": "as in a SyncGroup's template",
  "SyncGroup.spec.clusters": "see Selecting clusters",
  "SyncGroup.spec.guard":
    "how much may be added, deleted and pruned before somebody is asked; left out: as the installation's setting says",
  "SyncGroup.spec.guard.additions":
    "largest number of clusters that join within the window; a percentage is of the clusters at its start, rounded down",
  "SyncGroup.spec.guard.deletions":
    "largest number of clusters that leave within the window, or lose a dropped template; counted like additions",
  "SyncGroup.spec.guard.objects":
    "largest number of objects of one Sync that one rollout prunes; a percentage counts from five objects on",
  "SyncGroup.spec.guard.per": "length of the window, which always ends now; from 1m to 720h",
  "SyncGroup.spec.rollout": "how newer rollouts go through the clusters",
  "SyncGroup.spec.rollout.jitter":
    "time over which the starts of the clusters are spread; use it instead of several stages",
  "SyncGroup.spec.rollout.maxConcurrent":
    "largest number of clusters of the group that change at once, over all stages; from 1 to 500",
  "SyncGroup.spec.rollout.maxFailures":
    "largest number of failed clusters of a rollout in one stage; one more halts the rollout there",
  "SyncGroup.spec.rollout.maxUnreachable":
    "largest number of unreachable clusters that a stage leaves behind; they catch up when they answer",
  "SyncGroup.spec.rollout.progressDeadline":
    "longest time without progress from the start of an apply until all objects are ready; after that the cluster has failed",
  "SyncGroup.spec.rollout.stages":
    "stages in order; a cluster is in the first one that selects it; the last one takes all others",
  "SyncGroup.spec.rollout.stages[].clusters": "see Selecting clusters; absent in the last stage, and only there",
  "SyncGroup.spec.rollout.stages[].maxConcurrent": "a smaller bound for this stage",
  "SyncGroup.spec.rollout.stages[].before":
    "the gates that a rollout passes before the first cluster of the stage gets it",
  "SyncGroup.spec.rollout.stages[].before[].approval": "people who have to approve the rollout for the stage",
  "SyncGroup.spec.rollout.stages[].before[].approval.by":
    "patterns of the ARNs of roles and users that may approve; * stands for any part of a name",
  "SyncGroup.spec.rollout.stages[].before[].approval.count": "the number of different people who have to approve",
  "SyncGroup.spec.rollout.stages[].before[].approval.expires":
    "how long they have for it; the rollout then stands still until a refresh or a newer one",
  "SyncGroup.spec.rollout.stages[].after":
    "the gates that a rollout passes after all clusters of the stage are done, and before the next stage",
  "SyncGroup.spec.rollout.stages[].after[].bake":
    "how long the clusters of the stage must stay within the budgets; each is checked once more at the end",
  "SyncGroup.spec.rollout.stages[].after[].alarm":
    "a CloudWatch alarm that ends the bake beside it when it is in ALARM",
  "SyncGroup.spec.rollout.stages[].after[].alarm.arn":
    "the ARN of a metric alarm or a composite alarm, in the account and region of the installation",
  "SyncGroup.spec.rollout.stages[].after[].check": "a program that approves or rejects the rollout after the bake",
  "SyncGroup.spec.rollout.stages[].after[].check.principal": "the ARN of the only role or user that may answer",
  "SyncGroup.spec.rollout.stages[].after[].check.expires":
    "how long it has for the answer; without one, the gate has failed",
  "SyncGroup.spec.rollout.stages[].after[].alarm.missing":
    "fail: the gate fails when the alarm lacked data during the bake; pass: only ALARM counts",
  "SyncGroup.spec.rollout.stages[].optional":
    "true: a rollout passes the first stage unverified while the stage has no cluster",
  "SyncGroup.spec.rollout.stages[].name": "name of the stage; a new name alone makes no new stage",
  "SyncGroup.spec.rollout.onFailure":
    "halt: a rollout that fails in a stage stands still there; rollback: the stage goes back by itself",
  "SyncGroup.spec.rollout.supersede":
    "whether newer rollouts follow while older ones are in progress, or only once these end",
  "SyncGroup.spec.templates": "1 to 20; each becomes a Sync `GROUP.TEMPLATE` on every selected cluster",
  "SyncGroup.spec.templates[].apply": "how the objects are applied and kept as applied",
  "SyncGroup.spec.templates[].apply.defaultNamespace":
    "namespace of namespaced objects that name none; left out: such objects are refused",
  "SyncGroup.spec.templates[].apply.drift":
    "the reaction to objects that are changed in the cluster: correct, report or off",
  "SyncGroup.spec.templates[].apply.interval": "how often an applied Sync is checked, 10s to 24h",
  "SyncGroup.spec.templates[].apply.prune":
    "delete objects that left the source; false keeps them recorded, to be pruned when it is true again",
  "SyncGroup.spec.templates[].commonMetadata":
    "labels and annotations of every object, which replace its own; not in templates of Pods",
  "SyncGroup.spec.templates[].commonMetadata.annotations": "annotations of every object",
  "SyncGroup.spec.templates[].commonMetadata.labels": "labels of every object",
  "SyncGroup.spec.templates[].components": "folders with a Component of kustomize, from the root of the repository",
  "SyncGroup.spec.templates[].createNamespace": "create `targetNamespace` with the objects",
  "SyncGroup.spec.templates[].createNamespace.annotations": "annotations of the namespace",
  "SyncGroup.spec.templates[].createNamespace.labels": "labels of the namespace",
  "SyncGroup.spec.templates[].images": "other names, tags or digests of images",
  "SyncGroup.spec.templates[].images[].digest": "such as `sha256:…`",
  "SyncGroup.spec.templates[].images[].name": "name of the image in the manifests, without tag and digest",
  "SyncGroup.spec.templates[].images[].newName": "the name that replaces it",
  "SyncGroup.spec.templates[].images[].newTag": "the new tag; or write `digest`",
  "SyncGroup.spec.templates[].name": "name of the template: its Syncs are GROUP.NAME",
  "SyncGroup.spec.templates[].namePrefix": "added before the name of each object, also in references to it",
  "SyncGroup.spec.templates[].nameSuffix": "added after the name of each object, also in references to it",
  "SyncGroup.spec.templates[].overrides":
    "fields of the template that differ on some clusters; of all overrides that select a cluster, later ones win",
  "SyncGroup.spec.templates[].overrides[].clusters": "see Selecting clusters",
  "SyncGroup.spec.templates[].overrides[].disabled":
    "these clusters do not get the template; objects that they have of it stay",
  "SyncGroup.spec.templates[].parameters":
    "texts by name, which may use expressions such as `{{ cluster.name }}`; see specialisation.md",
  "SyncGroup.spec.templates[].patches": "see specialisation.md",
  "SyncGroup.spec.templates[].patches[].patch": "a strategic merge patch, or a list of JSON patch operations, as YAML",
  "SyncGroup.spec.templates[].patches[].target": "the objects to patch; left out: the one that the patch names",
  "SyncGroup.spec.templates[].patches[].target.annotationSelector": "only objects with these annotations",
  "SyncGroup.spec.templates[].patches[].target.group": "only objects whose API group matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.kind":
    "only objects whose kind matches this pattern, a regular expression",
  "SyncGroup.spec.templates[].patches[].target.labelSelector": "only objects with these labels",
  "SyncGroup.spec.templates[].patches[].target.name": "only objects whose name matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.namespace": "only objects whose namespace matches this pattern",
  "SyncGroup.spec.templates[].patches[].target.version": "only objects whose API version matches this pattern",
  "SyncGroup.spec.templates[].path": "folder in the repository; see Paths",
  "SyncGroup.spec.templates[].render": "left out: helm for a chart, kustomize with a kustomization file, else plain",
  "SyncGroup.spec.templates[].render.helm": "a chart of the repository; see helm.md",
  "SyncGroup.spec.templates[].render.helm.apiVersions": "API versions that the chart sees besides those of Kubernetes",
  "SyncGroup.spec.templates[].render.helm.crds":
    "the objects of the folder `crds`: skip, create if they are missing, or apply with the rest",
  "SyncGroup.spec.templates[].render.helm.hooks":
    "objects that Helm runs around an install or upgrade: run (order.md), ignore or refuse",
  "SyncGroup.spec.templates[].render.helm.kubeVersion":
    "version for the chart; left out: that of the cluster if it is known, otherwise the renderer's own",
  "SyncGroup.spec.templates[].render.helm.lookup": "a chart that reads the cluster is refused, or finds nothing",
  "SyncGroup.spec.templates[].render.helm.releaseName": "left out: the name of the template or Sync",
  "SyncGroup.spec.templates[].render.helm.values":
    "values that replace those of the files and the chart; at most 65,536 bytes as JSON",
  "SyncGroup.spec.templates[].render.helm.valuesFrom": "files of values; a later one replaces an earlier one",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].optional": "true: the file may be missing",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].path": "from the root of the repository; see Paths",
  "SyncGroup.spec.templates[].render.helm.valuesFrom[].source":
    "another Source of the same namespace, that has the file; left out: the template's",
  "SyncGroup.spec.templates[].render.kustomize":
    "the kustomize built into kubectl; remote bases and plugins are refused",
  "SyncGroup.spec.templates[].render.plain": "every YAML and JSON file of the folder, decoded as kubectl decodes it",
  "SyncGroup.spec.templates[].revision":
    "a commit, tag, version or digest of the Source, at which the template stays; left out: it follows the Source",
  "SyncGroup.spec.templates[].source": "a Source of the same namespace",
  "SyncGroup.spec.templates[].substitute":
    "whether $ with a NAME in braces, in the texts of objects, is replaced by that parameter",
  "SyncGroup.spec.templates[].substitute.mode": "text: replace in the YAML text, like Flux (specialisation.md)",
  "SyncGroup.spec.templates[].targetNamespace":
    "namespace of every namespaced object; may use expressions such as `{{ cluster.name }}`",
  "metadata.annotations": "kept, without meaning to Starling",
  "metadata.labels": "as in Kubernetes",
  "metadata.name": "name of the object: at most 63 characters of a-z, 0-9 and -",
  "metadata.namespace": "the Starling namespace (tenant) of the object; left out: that of -n or of the context",
  "selection.all": "true: every cluster",
  "selection.names": "clusters by name",
  "selection.notNames": "names of clusters that are never selected",
  "selection.selector": "clusters by label, as in Kubernetes",
  "selection.selector.matchExpressions": "further conditions on labels; all must hold",
  "selection.selector.matchExpressions[].key": "name of a label",
  "selection.selector.matchExpressions[].operator":
    "In or NotIn: the value must, or must not, be one of values; Exists or DoesNotExist",
  "selection.selector.matchExpressions[].values": "the values for In and NotIn",
  "selection.selector.matchLabels": "labels and the values that they must have",
};

const selection =
  /^spec\.(?:clusters|groups|sources\[\]|rollout\.stages\[\]\.clusters|templates\[\]\.overrides\[\]\.clusters)\.(?=selector|names|notNames|all)/;
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
