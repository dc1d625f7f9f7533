import { inclusionText } from "#cli/format/artifacts-text.ts";
import { conditionsText, eventsText, fieldsText, nextText, sectionText } from "#cli/format/describe-text.ts";
import { digestText, getTable, worstObjectsFirst } from "#cli/format/get-table.ts";
import { inputsText, type ShownInputs, writtenInputsText } from "#cli/format/inputs-text.ts";
import { readingPlace } from "#cli/format/reading-place.ts";
import { formatTable } from "#cli/format/table.ts";
import { clusterValuesText } from "#cli/format/values-text.ts";
import { counted } from "#shared/base/counted.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type {
  ClusterObject,
  ClusterValuesObject,
  DiscoveryObject,
  EventItem,
  PinnedRevisionItem,
  ReceiverObject,
  SourceObject,
  SyncGroupObject,
  SyncObject,
  WindowObject,
} from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import type { CosignTrust } from "#shared/fleet/kinds/cosign-trust.ts";
import {
  bucketAddress,
  folderFor,
  type GitUpstream,
  type GitVerification,
  type HelmUpstream,
  type Inclusion,
  type OciUpstream,
  type RemoteUpstream,
  type Upstream,
  upstreamOf,
} from "#shared/fleet/kinds/source.ts";
import { type Artifact, type Operations, reachesNobody } from "#shared/fleet/rows/object-rows.ts";
import { staleSince } from "#shared/fleet/sources/stale-source.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { actText, cordonedText, frozenText, objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

interface Described<O> {
  readonly object: O;
  readonly events: readonly EventItem[];
  readonly now: Date;
}

/** The page of a row that this version cannot read: the fields of its key, and what to do. */
export function describeUnreadable(object: UnreadableObject, now: Date): string {
  const { metadata, spec, status } = object;
  return [
    fieldsText([
      ["Name", metadata.name],
      ["Namespace", metadata.namespace],
      ["Cluster", spec.cluster],
      ["Status", status.state],
    ]),
    sectionText("Conditions", conditionsText(status.conditions, now)),
  ].join("");
}

function credentialsText(credentials: RemoteUpstream["credentials"]): string | undefined {
  if (credentials === undefined) return undefined;
  const { kind, secret } = credentials;
  return kind === "aws" ? "Starling's own role (aws)" : `secret ${secret} (${kind})`;
}

/** An included Source, and the artifact of it that is a part of the Source's own one. */
function includedText(one: Inclusion, artifact: Artifact | undefined): string {
  const place = folderFor(one);
  const had = artifact?.included?.find((each) => each.source === one.source && folderFor(each) === place);
  const what = had === undefined ? "not yet" : `${revisionText(had.revision)}   ${digestText(had.digest)}`;
  return `${inclusionText(one)}   ${what}`;
}

/** A template that stays at a revision, and the artifact of that. */
function pinnedText({ revision, owner, template, found, failure }: PinnedRevisionItem): string {
  const who = owner.kind === "Sync" ? `sync/${owner.name}` : `template ${template} of syncgroup/${owner.name}`;
  const artifact = found && `${revisionText(found.revision)}   ${digestText(found.digest)}`;
  const problem = failure && `${failure.code}: ${failure.message}`;
  return [revision, who, ...[artifact, problem].filter((text) => text !== undefined)].join("   ");
}

export interface DescribedSource extends Described<SourceObject> {
  /** The zone from which it is read, where that is known. */
  readonly from?: string | undefined;
}

export function describeSource({ object: source, events, from, now }: DescribedSource): string {
  const { artifact, pins = [] } = source.status;
  const stale = staleSince(source, now);
  const { paths, interval, immutableTags, retain, include = [] } = source.spec;
  const upstream = upstreamOf(source.spec);
  const credentials = "url" in upstream ? upstream.credentials : undefined;
  return [
    headText(source, now),
    fieldsText([
      ...upstreamFields(upstream),
      ["Tags", immutableTags === true ? "immutable: one that moves is refused" : undefined],
      ["Retains", retain === undefined ? undefined : retain === 1 ? "1 revision" : `${retain} revisions`],
      ["Paths", paths.join(", ")],
      ["Interval", interval],
      ["Credentials", credentialsText(credentials)],
      // CI pushes the others.
      ["Zone", from === undefined || upstream.kind === "external" ? undefined : readingPlace(from)],
      [
        "Artifact",
        artifact === undefined
          ? "none yet"
          : `${revisionText(artifact.revision)}   ${digestText(artifact.digest)}   ${artifact.files === 1 ? "1 file" : `${artifact.files} files`}, ${artifact.sizeBytes} bytes, stored ${formatTime(artifact.storedAt, now)}`,
      ],
      [upstream.kind === "git" ? "Commit" : "Content", artifact === undefined ? undefined : aboutText(artifact)],
      ["Stale since", stale === undefined ? undefined : `${formatTime(stale, now)} (${formatAge(stale, now)})`],
    ]),
    sectionText("Includes", include.map((one) => `  ${plainLine(includedText(one, artifact))}\n`).join("")),
    sectionText("Pinned revisions", pins.map((pin) => `  ${plainLine(pinnedText(pin))}\n`).join("")),
    sectionText("Conditions", conditionsText(source.status.conditions, now)),
    sectionText("Events", eventsText(events, now)),
    nextText(
      objectState(source).word === "NotReady"
        ? [
            `starling reconcile source/${source.metadata.name} -n ${source.metadata.namespace ?? ""}   (after the repair)`,
          ]
        : [],
    ),
  ].join("");
}

export function describeCluster({
  object: cluster,
  syncs,
  columns,
  now,
}: Omit<Described<ClusterObject>, "events"> & {
  readonly syncs: readonly SyncObject[];
  readonly columns?: number | undefined;
}): string {
  const { eks, endpoint, access } = cluster.spec;
  const { mismatch, discovered } = cluster.status;
  const { name } = cluster.metadata;
  const table = getTable("Sync", worstObjectsFirst(syncs), { now, width: "normal", namespaces: "all" });
  return [
    headText(cluster, now),
    fieldsText([
      ["EKS", eks?.arn ?? discovered?.arn],
      [
        "Discovered",
        discovered === undefined ? undefined : `by clusterdiscovery/${discovered.by}${goneText(discovered.goneSince)}`,
      ],
      ["Role", (access?.role ?? discovered?.access?.role)?.name],
      ["Zone", access?.zone ?? discovered?.access?.zone],
      ["External id", cluster.status.externalId],
      [
        "Server",
        endpoint?.server ?? (eks?.endpointOverride && `${eks.endpointOverride.server} (in place of EKS' own)`),
      ],
      ["Token", endpoint === undefined ? undefined : `secret ${endpoint.token.secret}`],
      ["Identity", cluster.status.uid === undefined ? "not seen yet" : `kube-system uid ${cluster.status.uid}`],
      ["Answers", mismatch === undefined ? undefined : `another cluster, kube-system uid ${mismatch}`],
      ["Frozen", cluster.status.frozen === undefined ? undefined : frozenText(cluster.status.frozen)],
      ["Cordoned", cluster.status.cordoned && cordonedText(name, cluster.status.cordoned)],
      ["Kubernetes", cluster.status.version],
    ]),
    sectionText("Values", clusterValuesText(cluster.status.values)),
    sectionText("Conditions", conditionsText(cluster.status.conditions, now)),
    sectionText(
      `Syncs (${syncs.length})`,
      syncs.length === 0 ? "" : formatTable(table, { headers: "show", indent: "  ", columns }),
    ),
    nextText(
      mismatch === undefined
        ? []
        : [`starling cluster accept ${name} --uid ${quoted(mismatch)}   (if the cluster was rebuilt)`],
    ),
  ].join("");
}

function goneText(since: string | undefined): string {
  return since === undefined ? "" : `; gone from EKS since ${since}`;
}

export function describeGroup({
  object: group,
  events,
  failing,
  inputs,
  columns,
  now,
}: Described<SyncGroupObject> & {
  readonly failing: readonly SyncObject[];
  /** The inputs on one cluster. Absent: the parameters and overrides of the group's spec. */
  readonly inputs?: { readonly cluster: string; readonly of: ShownInputs };
  /** Width of the terminal. Absent: nothing is cut. */
  readonly columns?: number | undefined;
}): string {
  const { status, spec, metadata } = group;
  const { clusters } = status;
  const templates = spec.templates.map((template) => [
    template.name,
    `source/${template.source}${template.revision === undefined ? "" : ` at ${template.revision}`}`,
    `path ${template.path}`,
    `prune ${template.apply.prune ? "on" : "off"}`,
    `drift ${template.apply.drift}`,
    ...(template.apply.defaultNamespace === undefined ? [] : [`namespace ${template.apply.defaultNamespace}`]),
  ]);
  const stages = spec.rollout.stages.map((stage, index) => [
    `${index + 1} ${stage.name}`,
    stage.clusters === undefined ? "every other cluster" : selectionText(stage.clusters),
    stage.maxConcurrent === undefined ? "" : `maxConcurrent ${stage.maxConcurrent}`,
    stage.optional === true ? "optional" : "",
  ]);
  const troubled = getTable("Sync", worstObjectsFirst(failing), { now, width: "normal", namespaces: "one" });
  const rollout = status.rollout === undefined ? undefined : `${metadata.name}-${status.rollout}`;
  const { maxConcurrent, maxFailures, maxUnreachable, progressDeadline } = spec.rollout;
  return [
    headText(group, now),
    fieldsText([
      ["Clusters", selectionText(spec.clusters)],
      ["Revision", revisionText(status.revision)],
      [
        "Noted",
        status.noted === undefined ? undefined : `${revisionText(status.noted)}   (changes nothing for this group)`,
      ],
      ["Rollout", rollout],
      [
        "Counts",
        clusters === undefined
          ? undefined
          : `${clusters.selected} selected: ${clusters.ready} ready, ${clusters.changing} changing, ${clusters.failed} failed, ${clusters.unreachable} unreachable, ${clusters.waiting} waiting${clusters.drifted === undefined ? "" : `, ${clusters.drifted} with drift`}`,
      ],
      [
        "Strategy",
        `maxConcurrent ${maxConcurrent}, maxFailures ${maxFailures}, maxUnreachable ${maxUnreachable}, progressDeadline ${progressDeadline}`,
      ],
    ]),
    sectionText(
      "Templates",
      formatTable({ columns: ["", "", "", "", ""], rows: templates }, { headers: "hide", indent: "  " }),
    ),
    inputs === undefined
      ? writtenInputsText(spec.templates, columns)
      : inputsText(inputs.of, { cluster: inputs.cluster, columns }),
    sectionText("Stages", formatTable({ columns: ["", "", ""], rows: stages }, { headers: "hide", indent: "  " })),
    sectionText("Conditions", conditionsText(status.conditions, now)),
    sectionText(
      "Syncs with problems",
      failing.length === 0 ? "" : formatTable(troubled, { headers: "show", indent: "  ", columns }),
    ),
    sectionText("Events", eventsText(events, now)),
    nextText(nextForGroup(group)),
  ].join("");
}

function nextForGroup(group: SyncGroupObject): readonly string[] {
  const where = `-n ${group.metadata.namespace ?? ""}`;
  const { name } = group.metadata;
  const { word } = objectState(group);
  if (word === "Suspended") return [`starling resume syncgroup/${name} ${where}`];
  if (word === "Waiting") return [`starling get sources ${where}`];
  if (reachesNobody(word)) return ["starling get clusters"];
  return group.status.rollout === undefined ? [] : [`starling rollout status ${name} ${where}`];
}

export function headText(
  object:
    | SourceObject
    | ReceiverObject
    | DiscoveryObject
    | ClusterObject
    | ClusterValuesObject
    | WindowObject
    | SyncGroupObject,
  now: Date,
): string {
  const state = objectState(object);
  const seen = state.seenAt === undefined ? "" : `, seen ${formatAge(state.seenAt, now)} ago`;
  return fieldsText([
    ["Name", object.metadata.name],
    ["Namespace", object.metadata.namespace],
    [
      "Labels",
      pairsText(object.kind === "Cluster" ? (object.status.labels ?? object.metadata.labels) : object.metadata.labels),
    ],
    [
      "Status",
      `${state.word}${state.since === undefined ? "" : ` for ${formatAge(state.since, now)}`}${seen}${state.remark === "" ? "" : `   ${state.remark}`}`,
    ],
    ...operationsFields(object.operations, now),
  ]);
}

function operationsFields(operations: Operations | undefined, now: Date): readonly (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [];
  const { suspended, exempt, deletion, reconcile, accepted } = operations ?? {};
  if (suspended !== undefined) fields.push(["Suspended", `${formatTime(suspended.at, now)} ${actText(suspended)}`]);
  if (exempt !== undefined && exempt.until > now.toISOString()) {
    const from = exempt.windows === undefined ? "every window" : exempt.windows.join(", ");
    fields.push(["Exempt", `from ${from} until ${formatTime(exempt.until, now)}, ${actText(exempt)}`]);
  }
  if (deletion !== undefined) {
    fields.push(["Deletion", `${formatTime(deletion.at, now)} ${actText(deletion)}, cascade ${deletion.cascade}`]);
  }
  if (accepted !== undefined) {
    fields.push(["Accepted", `${formatTime(accepted.at, now)} uid ${accepted.uid} ${actText(accepted)}`]);
  }
  if (reconcile !== undefined) fields.push(["Reconcile", `${formatTime(reconcile.at, now)} ${actText(reconcile)}`]);
  return fields;
}

function verificationText({ mode, keys }: GitVerification): string {
  const what = { HEAD: "the commit", Tag: "the tag", TagAndHEAD: "the tag and the commit" }[mode];
  return `the signature of ${what}, with ${counted(keys.length, "trusted key")}`;
}

function chartVerificationText({ provenance, cosign }: NonNullable<HelmUpstream["verify"]>): string {
  if (cosign !== undefined) return cosignText(cosign);
  return `the provenance file of the chart, with ${counted(provenance?.keys.length ?? 0, "trusted key")}`;
}

function cosignText({ keys, identities = [] }: CosignTrust): string {
  const trusted =
    keys === undefined ? counted(identities.length, "trusted signer") : counted(keys.length, "trusted key");
  return `the signature of cosign, with ${trusted}`;
}

function upstreamFields(upstream: Upstream): Parameters<typeof fieldsText>[0] {
  switch (upstream.kind) {
    case "git":
      return [
        ["Repository", upstream.url],
        ["Follows", referenceText(upstream.ref)],
        ["Verifies", upstream.verify === undefined ? undefined : verificationText(upstream.verify)],
      ];
    case "helm":
      return [
        ["Repository", upstream.url],
        ["Chart", upstream.chart],
        ["Follows", `versions ${upstream.ref?.semver ?? "*"}`],
        ["Verifies", upstream.verify === undefined ? undefined : chartVerificationText(upstream.verify)],
      ];
    case "oci":
      return [
        ["Repository", upstream.url],
        ["Follows", ociReferenceText(upstream.ref)],
        ["Verifies", upstream.verify === undefined ? undefined : cosignText(upstream.verify.cosign)],
      ];
    case "s3":
      return [
        ["Bucket", bucketAddress(upstream)],
        ["Region", upstream.region],
      ];
    case "external":
      return [
        ["Pushed by", upstream.principals.join(", ")],
        ["Follows", upstream.version === undefined ? "the newest pushed version" : `version ${upstream.version}`],
      ];
    case "archive":
      return [
        ["Archive", upstream.url],
        ["Checksum", `sha256:${upstream.sha256}`],
      ];
  }
}

function aboutText({ subject, author }: Artifact): string {
  return author === "" ? `"${subject}"` : `"${subject}" (${author})`;
}

function ociReferenceText(ref: OciUpstream["ref"]): string {
  if (ref?.semver !== undefined) return `versions ${ref.semver}${filterText(ref.tagFilter)}`;
  return ref?.digest === undefined ? `tag ${ref?.tag ?? "latest"}` : `digest ${ref.digest}`;
}

function referenceText(ref: GitUpstream["ref"]): string {
  if (ref === undefined) return "the remote's HEAD";
  if (ref.branch !== undefined) return `branch ${ref.branch}`;
  if (ref.tag !== undefined) return `tag ${ref.tag}`;
  if (ref.name !== undefined) return `reference ${ref.name}`;
  if (ref.commit !== undefined) return `commit ${ref.commit}`;
  return `versions ${ref.semver ?? ""}${ref.tagPrefix === undefined ? "" : ` of tags ${ref.tagPrefix}*`}${filterText(ref.tagFilter)}`;
}

function filterText(tagFilter: string | undefined): string {
  return tagFilter === undefined ? "" : `, of tags that match ${tagFilter}`;
}

export function pairsText(pairs: Readonly<Record<string, string>> | undefined): string | undefined {
  const all = Object.entries(pairs ?? {});
  return all.length === 0 ? undefined : all.map(([key, value]) => `${key}=${value}`).join(" ");
}
