import { createHash } from "node:crypto";
import { parseJson, stringifyJson } from "#shared/domain/json.ts";
import {
  annotationsOf,
  isBeingDeleted,
  type KubeObject,
  labelsOf,
  type ManifestObject,
  stringAt,
} from "#shared/domain/kube-object.ts";
import { parentLabel } from "#shared/domain/membership.ts";
import { compareText, formatGroupKind, type GroupKind, parseGroupKind } from "#shared/domain/object-id.ts";

/** The namespace of every parent object; Starling creates it and never deletes it. */
export const parentNamespace = "starling-system";
const tooling = "starling/v0.1";

const toolingAnnotation = "applyset.kubernetes.io/tooling";
const groupKindsAnnotation = "applyset.kubernetes.io/contains-group-kinds";
const annotation = {
  installation: "starling.dev/installation",
  sync: "starling.dev/sync",
  syncUid: "starling.dev/sync-uid",
  generation: "starling.dev/generation",
  fence: "starling.dev/fence",
  renderDigest: "starling.dev/render-digest",
  attempted: "starling.dev/attempted",
} as const;

/** More attempts than this without one clean inventory, and the oldest are forgotten: an annotation is not a log. */
const maxAttempted = 20;

const digestForm = /^sha256:[0-9a-f]{1,64}$/;

/** Who works on which Sync, as of which assignment: written to the cluster before anything else is. */
export interface SyncClaim {
  /** Id of this installation of Starling. */
  readonly installationId: string;
  readonly syncNamespace: string;
  readonly syncName: string;
  /** Uid of the Sync on this cluster. */
  readonly syncUid: string;
  /** Number of the planner's assignment; grows. */
  readonly generation: number;
  /** Number of the worker's lease on the cluster; grows. */
  readonly fence: number;
  /** Digest of the rendering about to be applied; absent when the Sync is to be deleted. */
  readonly renderDigest?: string;
}

/** What the parent in the cluster remembers. */
export interface ParentRecord {
  readonly installationId: string;
  readonly syncUid: string;
  readonly generation: number;
  readonly fence: number;
  readonly renderDigest: string | undefined;
  /** Renderings tried since the inventory was last stored complete: they may have left objects it does not know. */
  readonly attempted: readonly string[];
}

/** What the parent knows of the set. */
export interface SetMemory {
  /** Digests of the rendering that was last given, and of those that may have left objects behind. */
  readonly renderings: readonly string[];
  /** Every kind that a member may have. */
  readonly groupKinds: readonly GroupKind[];
}

/** What is known of the set beside its parent. */
export interface SetKnowledge {
  /** Kinds of what is about to be applied and of what the inventory holds. */
  readonly groupKinds: readonly GroupKind[];
  /** The newest generation after which the stored inventory held every member; absent when there never was one. */
  readonly settledThrough?: number;
}

export type ParentDecision =
  | { readonly kind: "write"; readonly object: ManifestObject; readonly record: ParentRecord }
  | { readonly kind: "refuse"; readonly reason: "ForeignOwner" | "ClusterAhead"; readonly message: string };

/** Name of the ConfigMap of a Sync: readable, unique, and a DNS name of at most 253 characters. */
export function parentName(claim: Pick<SyncClaim, "syncNamespace" | "syncName">): string {
  const name = `${claim.syncNamespace}.${claim.syncName}`.toLowerCase();
  const readable = /^[a-z0-9][-a-z0-9.]*[a-z0-9]$/.test(name) && !/\.\.|\.-|-\./.test(name);
  if (readable && name.length <= 200) return name;
  const digest = createHash("sha256").update(`${claim.syncNamespace}/${claim.syncName}`).digest("hex").slice(0, 16);
  return `${name
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 180)}-${digest}`.replace(/^-/, "");
}

/** The id of a set, of KEP-3659: `applyset-<base64url(sha256("<name>.<namespace>.<kind>.<group>"))>-v1`. */
export function setIdOf(claim: Pick<SyncClaim, "syncNamespace" | "syncName">): string {
  const parent = `${parentName(claim)}.${parentNamespace}.ConfigMap.`;
  return `applyset-${createHash("sha256").update(parent).digest("base64url")}-v1`;
}

/**
 * Decides what becomes of the parent at the start of an attempt, or that the attempt must not be: another tool's,
 * installation's or Sync's parent is `ForeignOwner`; a parent written under a newer (generation, fence) is
 * `ClusterAhead`: we are a worker that lost its lease, or our table was restored from a backup.
 * The rendering's digest is added to what was attempted before a single object of it is written; what was attempted up
 * to the generation whose inventory is stored complete is no longer uncertain, and is forgotten.
 */
export function nextParent(current: KubeObject | undefined, claim: SyncClaim, known: SetKnowledge): ParentDecision {
  const before = current === undefined ? undefined : readParent(current);
  const refusal = current && before ? refuse(current, before, claim) : undefined;
  if (refusal) return refusal;
  const settled = before === undefined || before.generation <= (known.settledThrough ?? 0);
  const attempted = settled ? [] : before.attempted.filter((digest) => digest !== claim.renderDigest);
  if (claim.renderDigest !== undefined) attempted.push(claim.renderDigest);
  // A parent that is older than what is settled came back with a restored cluster, and other members with it.
  const isRestored = before !== undefined && before.generation < (known.settledThrough ?? 0);
  const earlier = settled && !isRestored ? [] : containedKinds(current);
  const kinds = new Set([...earlier, ...known.groupKinds.map(formatGroupKind)]);
  return write(current, claim, { attempted: attempted.slice(-maxAttempted), kinds });
}

/** Whether the parent still is as this worker wrote it: checked before anything is deleted. */
export function holdsClaim(current: KubeObject | undefined, claim: SyncClaim): boolean {
  if (current === undefined) return false;
  const known = readParent(current);
  return (
    known.installationId === claim.installationId &&
    known.syncUid === claim.syncUid &&
    known.generation === claim.generation &&
    known.fence === claim.fence
  );
}

/** What a parent says of the set, for who has lost the inventory; nothing when it is not this Sync's. */
export function memoryOf(parent: KubeObject | undefined, claim: SyncClaim): SetMemory | undefined {
  if (parent === undefined) return undefined;
  const { installationId, syncUid, renderDigest, attempted } = readParent(parent);
  if (installationId !== claim.installationId || syncUid !== claim.syncUid) return undefined;
  const renderings = [
    ...(renderDigest !== undefined && digestForm.test(renderDigest) ? [renderDigest] : []),
    ...attempted,
  ];
  return { renderings, groupKinds: containedKinds(parent).map(parseGroupKind) };
}

function readParent(parent: KubeObject): ParentRecord {
  const annotations = annotationsOf(parent);
  return {
    installationId: annotations[annotation.installation] ?? "",
    syncUid: annotations[annotation.syncUid] ?? "",
    generation: numberFrom(annotations[annotation.generation]),
    fence: numberFrom(annotations[annotation.fence]),
    renderDigest: annotations[annotation.renderDigest],
    attempted: digestsFrom(annotations[annotation.attempted]),
  };
}

function refuse(current: KubeObject, known: ParentRecord, claim: SyncClaim): ParentDecision | undefined {
  const name = `ConfigMap ${parentNamespace}/${stringAt(current, "metadata", "name")}`;
  const remedy = `delete ${name} in the cluster to let this installation take the Sync over`;
  const tool = annotationsOf(current)[toolingAnnotation] ?? "";
  if (!tool.startsWith("starling/")) {
    return foreign(`${name} exists and is not Starling's (tooling ${JSON.stringify(tool)}); rename or delete it`);
  }
  if (known.installationId !== claim.installationId) {
    return foreign(
      `${name} belongs to the installation ${known.installationId}, this is ${claim.installationId}; ${remedy}`,
    );
  }
  if (known.syncUid !== claim.syncUid) {
    return foreign(`${name} belongs to the Sync with uid ${known.syncUid}, this one has ${claim.syncUid}; ${remedy}`);
  }
  const ahead = known.generation - claim.generation || known.fence - claim.fence;
  if (ahead <= 0) return undefined;
  const theirs = `generation ${known.generation}, fence ${known.fence}`;
  const ours = `generation ${claim.generation}, fence ${claim.fence}`;
  const message = `the cluster was given ${theirs}, this attempt is ${ours}: it is out of date, or the table was restored from a backup; in that case ${remedy}`;
  return { kind: "refuse", reason: "ClusterAhead", message };
}

function foreign(message: string): ParentDecision {
  return { kind: "refuse", reason: "ForeignOwner", message };
}

function write(
  current: KubeObject | undefined,
  claim: SyncClaim,
  { attempted, kinds }: { readonly attempted: readonly string[]; readonly kinds: ReadonlySet<string> },
): ParentDecision {
  const record: ParentRecord = {
    installationId: claim.installationId,
    syncUid: claim.syncUid,
    generation: claim.generation,
    fence: claim.fence,
    renderDigest: claim.renderDigest,
    attempted,
  };
  const resourceVersion =
    current && !isBeingDeleted(current) ? stringAt(current, "metadata", "resourceVersion") : undefined;
  const object: ManifestObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: parentName(claim),
      namespace: parentNamespace,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      labels: { ...(current ? labelsOf(current) : {}), [parentLabel]: setIdOf(claim) },
      annotations: {
        [toolingAnnotation]: tooling,
        [groupKindsAnnotation]: [...kinds].sort(compareText).join(","),
        [annotation.installation]: claim.installationId,
        [annotation.sync]: `${claim.syncNamespace}/${claim.syncName}`,
        [annotation.syncUid]: claim.syncUid,
        [annotation.generation]: String(claim.generation),
        [annotation.fence]: String(claim.fence),
        ...(claim.renderDigest === undefined ? {} : { [annotation.renderDigest]: claim.renderDigest }),
        [annotation.attempted]: stringifyJson(attempted),
      },
    },
  };
  return { kind: "write", object, record };
}

function containedKinds(current: KubeObject | undefined): readonly string[] {
  const list = annotationsOf(current)[groupKindsAnnotation] ?? "";
  return list.split(",").filter((kind) => kind !== "");
}

function numberFrom(text: string | undefined): number {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : 0;
}

/** An unreadable list counts as none; whoever edits a parent by hand loses only the memory of failed attempts. */
function digestsFrom(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  try {
    const list = parseJson(text);
    const digests = Array.isArray(list) ? list.filter((digest) => typeof digest === "string") : [];
    // They become names of blobs, and whoever may write to the parent could name any.
    return digests.filter((digest) => digestForm.test(digest));
  } catch {
    return [];
  }
}
