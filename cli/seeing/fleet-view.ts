/** Reads everything that a plan needs once: from an installation, from files, or from both. */

import { requireReadable } from "#cli/format/require-readable.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { type LocalArtifact, readLocalArtifact } from "#cli/seeing/local-artifact.ts";
import { readPin, readRevision } from "#cli/seeing/source-revision.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import { listPath, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { firstOf } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { FleetMember, UnreadableMember } from "#shared/fleet/api/fleet-member.ts";
import type {
  ClusterObject,
  ClusterValuesObject,
  SourceObject,
  SyncGroupObject,
  SyncObject,
} from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { effectiveValues, inOrder } from "#shared/fleet/effective-values.ts";
import { folderFor, foldersOf, upstreamOf } from "#shared/fleet/kinds/source.ts";
import { type SourcePin, templatePins, templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { desiredPlan, type PlannedOwner, relationOf, type SourceFacts } from "#shared/fleet/rollout/desired-plan.ts";
import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Discovered, Operations, OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import type { Plan } from "#shared/fleet/rows/rollout-rows.ts";

/** More clusters than any fleet has. */
export const allOfThem = 100_000;

/** The values of one ClusterValues. Layers override each other in their order. */
export type Layer = Pick<ClusterValuesObject, "spec"> & { readonly name: string };

export interface ViewedCluster extends Omit<FleetMember, "cluster"> {
  readonly name: string;
  /** The effective values. */
  readonly effective: FleetMember["values"];
}

type Labels = Readonly<Record<string, string>>;

export interface FleetView {
  readonly owner: Owner;
  readonly desired: PlannedOwner;
  readonly labels: Labels;
  /** The object in the installation. Absent: the installation does not have it. */
  readonly present?: { readonly desired: PlannedOwner; readonly labels: Labels; readonly status: OwnerStatus };
  readonly plan: Plan;
  readonly clusters: readonly ViewedCluster[];
  /** Clusters whose rows a newer version wrote, so that this version cannot plan them. */
  readonly unreadable: readonly string[];
  readonly layers: readonly Layer[];
  /** Artifacts of folders and revisions, by digest. */
  readonly local: ReadonlyMap<string, LocalArtifact>;
}

/** @throws CliFailure when the group or Sync does not exist, or has nothing to plan yet. */
export async function viewFleet(session: Session, owner: Owner, changes: Changes): Promise<FleetView> {
  const present = await presentOf(session, owner, changes);
  const { desired, labels } = writtenOf(owner, changes) ?? present ?? {};
  if (desired === undefined || labels === undefined) throw noSuchOwner(owner, changes);
  const sources = await artifactsOf(session, desired, changes);
  const planned = desiredPlan(desired, sources.artifacts);
  if (!planned.ok)
    throw new CliFailure(planned.message, { exit: "no", next: `starling get sources -n ${owner.namespace}` });
  const layers = inOrder(await layersOf(session, changes)).map(({ name, spec }) => ({ name, spec }));
  const { members, unreadable } = await membersOf(session, owner, changes);
  const clusters = members.map(({ cluster: name, ...member }) => ({
    ...member,
    name,
    effective: effectiveValues({ ...member, name }, layers),
  }));
  return {
    owner,
    desired,
    labels,
    ...(present === undefined ? {} : { present }),
    plan: planned.plan,
    clusters,
    unreadable,
    layers,
    local: sources.local,
  };
}

/** The clusters with their effective values. */
export function fleetOf({ clusters }: FleetView) {
  return clusters.map(({ effective, ...cluster }) => ({ ...cluster, values: effective }));
}

async function presentOf(session: Session, owner: Owner, { from }: Changes): Promise<FleetView["present"]> {
  if (from === "documents alone") return undefined;
  const { namespace, kind, name } = owner;
  const path = pathOfObject({ kind, name }, namespace);
  const found = await session.api
    .call<SyncGroupObject | SyncObject | UnreadableObject>({ method: "GET", path })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  if (found === undefined) return undefined;
  const object = requireReadable(found);
  const operations = object.operations ?? {};
  const { labels = {} } = object.metadata;
  return object.kind === "SyncGroup"
    ? { desired: { type: "SyncGroup", namespace, name, spec: object.spec, operations }, labels, status: object.status }
    : {
        desired: { type: "Sync", namespace, name, spec: object.spec, operations },
        labels,
        status: object.status.plan ?? none,
      };
}

const none: OwnerStatus = { conditions: [] };
const noOperations: Operations = {};

function writtenOf(
  { namespace, kind, name }: Owner,
  { documents }: Changes,
): Pick<FleetView, "desired" | "labels"> | undefined {
  for (const document of documents) {
    if (document.kind !== kind || document.metadata.name !== name) continue;
    if (!("namespace" in document.metadata) || document.metadata.namespace !== namespace) continue;
    const about = { namespace, name, operations: noOperations };
    const { labels = {} } = document.metadata;
    if (document.kind === "SyncGroup") return { desired: { ...about, type: "SyncGroup", spec: document.spec }, labels };
    if (document.kind === "Sync") return { desired: { ...about, type: "Sync", spec: document.spec }, labels };
  }
  return undefined;
}

interface SourceArtifacts {
  readonly artifacts: ReadonlyMap<string, SourceFacts>;
  readonly local: FleetView["local"];
}

async function artifactsOf(session: Session, desired: PlannedOwner, changes: Changes): Promise<SourceArtifacts> {
  const artifacts = new Map<string, SourceFacts>();
  const local = new Map<string, LocalArtifact>();
  const names = [...followedBy(desired)];
  const onlyOne = changes.revisions.get("");
  if (onlyOne !== undefined && names.length > 1) {
    const next = names.map((name) => `--revision ${quoted(`${name}=${onlyOne}`)}`).join(" or ");
    throw usageFailure(`${desired.name} has ${names.length} Sources; --revision must name one`, next);
  }
  for (const name of names) {
    const found = await sourceOf(session, desired.namespace, name, changes);
    const read = await instead(session, { desired, name, found }, changes);
    if (read !== undefined) {
      local.set(read.artifact.digest, read);
      artifacts.set(name, { status: { artifact: read.artifact } });
    } else if (found?.status !== undefined) artifacts.set(name, { status: found.status });
  }
  for (const pin of templatePins(relationOf(desired).templates)) {
    const read = await pinned(session, { desired, pin, isFollowed: names.includes(pin.source) }, changes);
    if (read === undefined) continue;
    local.set(read.artifact.digest, read);
    const { status = {}, pins = new Map() } = artifacts.get(pin.source) ?? {};
    artifacts.set(pin.source, { status, pins: new Map([...pins, [pin.revision, { artifact: read.artifact }]]) });
  }
  return { artifacts, local };
}

/** Names of the Sources that it follows; a template that stays at a revision does not follow its own. */
function followedBy(owner: PlannedOwner): ReadonlySet<string> {
  return new Set(
    relationOf(owner).templates.flatMap((template) =>
      template.revision === undefined
        ? templateSources(template)
        : templateSources(template).filter((name) => name !== template.source),
    ),
  );
}

interface PinQuery {
  readonly desired: PlannedOwner;
  readonly pin: SourcePin;
  /** Whether something else follows the Source. */
  readonly isFollowed: boolean;
}

/** The artifact at which a template stays; undefined if there is no such Source. */
async function pinned(
  session: Session,
  { desired, pin: { source: name, revision }, isFollowed }: PinQuery,
  changes: Changes,
): Promise<LocalArtifact | undefined> {
  const { folders, revisions, from } = changes;
  const flag = folders.has(name) ? "--source" : "--revision";
  if (!isFollowed && (folders.has(name) || revisions.has(name) || revisions.has("")))
    throw usageFailure(
      `${desired.name} stays at revision ${revision} of Source ${name}, whatever ${flag} says`,
      `starling plan -f FILE   (with another revision in the template)`,
    );
  const found = await knownSource(session, { namespace: desired.namespace, name }, changes);
  if (found === undefined) return undefined;
  const { namespace, type: kind } = desired;
  const owner = { namespace, kind, name: desired.name };
  return readPin(session, { owner, name, spec: found.spec, revision }, from);
}

/** Names of the Sources of its templates. */
export function sourceNamesOf(owner: PlannedOwner): ReadonlySet<string> {
  return new Set(relationOf(owner).templates.flatMap(templateSources));
}

/** The artifact of `--source` or `--revision` for a Source; undefined if neither names it. */
async function instead(
  session: Session,
  {
    desired,
    name,
    found,
  }: { readonly desired: PlannedOwner; readonly name: string; readonly found?: KnownSource | undefined },
  { folders, revisions, from }: Changes,
): Promise<LocalArtifact | undefined> {
  const folder = folders.get(name);
  // Neither a folder nor a fetch has the included files by itself, and a plan without them would show wrong deletions.
  const paths = found === undefined ? ["."] : foldersOf(found.spec);
  const ignore = found?.spec.ignore;
  if (folder !== undefined) {
    const whole = (found?.spec.include ?? []).map(folderFor);
    return readLocalArtifact(session.io, folder, { paths, ignore, whole });
  }
  const revision = revisions.get(name) ?? revisions.get("");
  if (revision === undefined) return undefined;
  const { namespace, type: kind } = desired;
  if (found === undefined)
    throw usageFailure(`Source ${name} is not known`, `-f FILE with the Source, or --source ${name}=FOLDER`);
  const owner = { namespace, kind, name: desired.name };
  return readRevision(
    session,
    { owner, name, upstream: upstreamOf(found.spec), paths, revision, ...defined({ ignore }) },
    from,
  );
}

interface KnownSource extends Pick<SourceObject, "spec"> {
  readonly status?: SourceObject["status"];
}

async function sourceOf(
  session: Session,
  namespace: string,
  name: string,
  changes: Changes,
): Promise<KnownSource | undefined> {
  const { from, folders, revisions } = changes;
  if (from === "documents alone" && !folders.has(name) && !revisions.has(name) && !revisions.has(""))
    throw usageFailure(`the content of Source ${name} is not known`, `--source ${name}=FOLDER`);
  return knownSource(session, { namespace, name }, changes);
}

/** The Source of the documents, otherwise of the installation; undefined if there is none. */
async function knownSource(
  session: Session,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { documents, from }: Pick<Changes, "documents" | "from">,
): Promise<KnownSource | undefined> {
  const written = documents.find(
    (document) =>
      document.kind === "Source" && document.metadata.namespace === namespace && document.metadata.name === name,
  );
  const spec = written?.kind === "Source" ? written.spec : undefined;
  if (from === "documents alone") return spec && { spec };
  const path = pathOfObject({ kind: "Source", name }, namespace);
  const found = await session.api
    .call<SourceObject | UnreadableObject>({ method: "GET", path })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const known = found === undefined ? undefined : requireReadable(found);
  return spec === undefined ? known : { ...known, spec };
}

async function layersOf(session: Session, { documents, from }: Changes): Promise<readonly Layer[]> {
  const written = documents.flatMap((document) =>
    document.kind === "ClusterValues" ? [{ name: document.metadata.name, spec: document.spec }] : [],
  );
  if (from === "documents alone") return written;
  const path = listPath("ClusterValues", undefined);
  const found = await readList<ClusterValuesObject | UnreadableObject>(session, { path, limit: allOfThem });
  const stored = found.items.map((object) => {
    const { metadata, spec } = requireReadable(object);
    return { name: metadata.name, spec };
  });
  return [...new Map([...stored, ...written].map((layer) => [layer.name, layer])).values()];
}

interface Members {
  readonly members: readonly FleetMember[];
  readonly unreadable: readonly string[];
}

async function membersOf(session: Session, owner: Owner, changes: Changes): Promise<Members> {
  const { documents, from, cluster } = changes;
  const written = documents.flatMap((document) =>
    document.kind === "Cluster" && (cluster === undefined || document.metadata.name === cluster) ? [document] : [],
  );
  const stored: (FleetMember | UnreadableMember)[] = [];
  if (from === "installation") {
    const path = `${pathOfObject({ kind: owner.kind, name: owner.name }, owner.namespace)}/fleet`;
    stored.push(
      ...(await readList<FleetMember | UnreadableMember>(session, { path, limit: allOfThem, query: { cluster } }))
        .items,
    );
  }
  const unreadable = stored.flatMap((member) => ("unreadable" in member ? [member.cluster] : []));
  const members = new Map(
    stored.flatMap((member) => ("unreadable" in member ? [] : [[member.cluster, member] as const])),
  );
  for (const { metadata, spec } of written) {
    const { name } = metadata;
    const discovered = members.has(name) ? await discoveredOf(session, name) : undefined;
    const values = { ...discovered?.values, ...spec.values };
    const found = Object.keys(values).filter((key) => !Object.hasOwn(spec.values ?? {}, key));
    members.set(name, {
      ...(members.get(name) ?? { uid: "", syncs: [] }),
      cluster: name,
      labels: clusterLabels({ labels: metadata.labels ?? {}, spec, ...defined({ discovered }) }),
      values,
      ...(found.length === 0 ? {} : { discoveredValues: found }),
    });
  }
  if (cluster !== undefined && members.size + unreadable.length === 0)
    throw new CliFailure(`cluster ${cluster} is not registered`, { exit: "no", next: "starling get clusters" });
  return { members: [...members.values()], unreadable };
}

/** The values that a ClusterDiscovery found for a cluster. A document overrides them. */
async function discoveredOf(session: Session, name: string): Promise<Discovered | undefined> {
  const path = pathOfObject({ kind: "Cluster", name }, "");
  const found = await session.api.call<ClusterObject | UnreadableObject>({ method: "GET", path });
  return requireReadable(found).status.discovered;
}

/** At most this many documents are named in an error. */
const mostKnown = 8;

function noSuchOwner({ namespace, kind, name }: Owner, { from, documents }: Changes): CliFailure {
  if (from === "installation")
    return new CliFailure(`${kind} ${namespace}/${name} does not exist in the installation or in the documents of -f`, {
      exit: "no",
      next: `starling get ${kind.toLowerCase()}s -n ${namespace}`,
    });
  const known = documents.flatMap((document) => {
    if (document.kind !== "SyncGroup" && document.kind !== "Sync") return [];
    const { metadata } = document;
    const own = `${document.kind.toLowerCase()}/${metadata.name}${metadata.namespace === namespace ? "" : ` -n ${metadata.namespace}`}`;
    // The argument may be the name of a template's Sync without its group.
    const isTemplate =
      document.kind === "SyncGroup" && document.spec.templates.some((one) => `${metadata.name}.${one.name}` === name);
    return isTemplate ? [`sync/${name}`, own] : [own];
  });
  return new CliFailure(`${kind} ${namespace}/${name} does not exist in the documents of -f`, {
    exit: "wrongInput",
    next:
      known.length === 0
        ? "a document of kind SyncGroup or Sync in a file of -f"
        : `they have ${firstOf(known, { most: mostKnown })}`,
  });
}
