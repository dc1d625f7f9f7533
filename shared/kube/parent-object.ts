import { createHash } from "node:crypto";
import { defined } from "#shared/base/defined.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import { parseJson, stringifyJson } from "#shared/base/json.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { compareText } from "#shared/base/text-order.ts";
import {
  annotationsOf,
  isBeingDeleted,
  type KubeObject,
  labelsOf,
  type ManifestObject,
  stringAt,
} from "#shared/kube/kube-object.ts";
import { parentLabel } from "#shared/kube/membership.ts";
import { formatGroupKind, type GroupKind, parseGroupKind } from "#shared/kube/object-id.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** What a cluster remembers of a Sync, in words that may be anybody's. */
export interface Remembered {
  /** Absent when it remembers nothing. */
  readonly token?: string;
  readonly attempt: number;
  readonly fence: number;
  readonly renderDigest?: string;
  readonly revision?: string;
  /** The inventory that was stored before the assignment was begun. */
  readonly inventory?: string;
  /** Whose it is, when it is not this Sync's: an installation's id, or the uid of another Sync. */
  readonly owner?: string;
}

/** Nobody's, or that of whoever is said to be gone. @param from - an installation's id, or the uid of a Sync. */
export function mayTakeOver({ owner }: Pick<Remembered, "owner">, from: string | undefined): boolean {
  return owner === undefined || owner === from;
}

/** The namespace of every parent object; Starling creates it and never deletes it. */
export const parentNamespace = "starling-system";
const tooling = "starling/v0.1";

const toolingAnnotation = "applyset.kubernetes.io/tooling";
const groupKindsAnnotation = "applyset.kubernetes.io/contains-group-kinds";
const annotation = {
  installation: "starling.dev/installation",
  sync: "starling.dev/sync",
  syncUid: "starling.dev/sync-uid",
  attempt: "starling.dev/attempt",
  fence: "starling.dev/fence",
  token: "starling.dev/token",
  revision: "starling.dev/revision",
  inventory: "starling.dev/inventory",
  renderDigest: "starling.dev/render-digest",
  attempted: "starling.dev/attempted",
  installing: "starling.dev/installing",
} as const;

/** More attempts than this without one clean inventory, and the oldest are forgotten: an annotation is not a log. */
const maxAttempted = 20;

const tokenForm = /^[0-9A-Za-z_-]{1,64}$/;
const maxOwner = 200;
const maxRevision = 300;
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
  readonly attempt: number;
  /** Number of the worker's lease on the cluster; grows. */
  readonly fence: number;
  /** Digest of the rendering about to be applied; absent when the Sync is to be deleted. */
  readonly renderDigest?: string;
  readonly revision: string;
  /** Of the assignment; nobody could have guessed it. */
  readonly token: string;
  /** Of the assignments before: the cluster may remember any of these. */
  readonly knownTokens: readonly string[];
  /** Of an assignment that somebody accepted, whoever's it was. */
  readonly acceptedToken?: string | undefined;
  /** Digest of the inventory that is stored; what is applied from now on is among `attempted`. */
  readonly inventory?: string;
  /** Whether the cluster may remember nothing: false when this table has written to it before. */
  readonly mayBeNew: boolean;
}

/** What the parent in the cluster remembers. */
export interface ParentRecord {
  readonly installationId: string;
  readonly syncUid: string;
  readonly attempt: number;
  readonly fence: number;
  readonly renderDigest: string | undefined;
  readonly revision: string | undefined;
  readonly token: string | undefined;
  readonly inventory: string | undefined;
  /** Renderings tried since the inventory was last stored complete: they may have left objects it does not know. */
  readonly attempted: readonly string[];
  /** Of a first install that had not come to its end when this was written. */
  readonly installing: boolean;
}

/** What the parent says of installs: that the first is under way, or that what is there was installed before. */
export type RememberedInstall = "underWay" | "over";

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
  /** The newest attempt after which the stored inventory held every member; absent when there never was one. */
  readonly settledThrough?: number;
  /** Of what was attempted up to then, the digests that may have left objects all the same. */
  readonly unsettled?: readonly string[] | undefined;
  /** Whether what begins is a first install; absent where nothing is applied: it is what it was. */
  readonly installing?: boolean;
  /** The newest attempt of which the rows forgot all that they had seen. */
  readonly keptThrough?: number | undefined;
}

export type ParentDecision =
  | { readonly kind: "write"; readonly object: ManifestObject; readonly record: ParentRecord }
  | ParentRefusal;

export interface ParentRefusal {
  readonly kind: "refuse";
  readonly reason: Among<"ForeignOwner" | "ClusterAhead" | "ParentMissing">;
  readonly message: string;
  /** For people, who may accept it; absent when the parent is another tool's. */
  readonly remembered?: Remembered;
}

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
 * installation's or Sync's parent is `ForeignOwner`; one of an assignment that these rows do not know, or of a newer
 * worker, is `ClusterAhead`: we are a worker that lost its lease, or our table was restored from a backup. One that these
 * rows have written, and that is gone, is `ParentMissing`.
 * The rendering's digest is added to what was attempted before a single object of it is written; what was attempted up
 * to the attempt whose inventory is stored complete is no longer uncertain, and is forgotten, unless it was not looked
 * for, or something was put back since and no inventory stored.
 */
export function nextParent(current: KubeObject | undefined, claim: SyncClaim, known: SetKnowledge): ParentDecision {
  const before = current === undefined ? undefined : readParent(current);
  const refusal = parentRefusal(current, claim);
  if (refusal) return refusal;
  const settled = before === undefined || (before.attempt <= (known.settledThrough ?? 0) && isStored(before, claim));
  const uncertain = settled ? (known.unsettled ?? []) : before.attempted;
  const attempted = uncertain.filter((digest) => digest !== claim.renderDigest);
  if (claim.renderDigest !== undefined) attempted.push(claim.renderDigest);
  // A parent that is older than what is settled came back with a restored cluster, and other members with it.
  const isRestored = before !== undefined && before.attempt < (known.settledThrough ?? 0);
  const earlier = settled && !isRestored ? [] : containedKinds(current);
  const kinds = new Set([...earlier, ...known.groupKinds.map(formatGroupKind)]);
  const { installing = rememberedInstall(current, claim, known.keptThrough) === "underWay" } = known;
  return write(current, claim, { attempted: attempted.slice(-maxAttempted), kinds, installing });
}

/** Whether an inventory was stored since the last claim: what was put back after that may not be in the one before. */
function isStored(before: ParentRecord, claim: SyncClaim): boolean {
  return before.inventory === undefined || before.inventory !== claim.inventory;
}

/** Whether the parent still is as this worker wrote it: checked before anything is deleted. */
export function holdsClaim(current: KubeObject | undefined, claim: SyncClaim): boolean {
  if (current === undefined) return false;
  const known = readParent(current);
  return (
    known.installationId === claim.installationId &&
    known.syncUid === claim.syncUid &&
    known.token === claim.token &&
    known.attempt === claim.attempt &&
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
  return { renderings, groupKinds: memberKindsOf(parent) };
}

/**
 * Whether a rendering of the set was given to the cluster, also by rows that have forgotten it, or that others have: it
 * is no first install then, whatever the inventory does not know.
 * @param keptThrough - see `SetKnowledge`.
 */
export function rememberedInstall(
  parent: KubeObject | undefined,
  claim: SyncClaim,
  keptThrough = 0,
): RememberedInstall | undefined {
  const known = parent === undefined ? undefined : readParent(parent);
  if (known?.renderDigest === undefined) return undefined;
  const isOfThese = known.attempt > keptThrough && known.token !== claim.acceptedToken;
  return isOfThese && known.installing ? "underWay" : "over";
}

/** Every kind that a member may have, as whatever parent is there says; none without one. */
export function memberKindsOf(parent: KubeObject | undefined): readonly GroupKind[] {
  return containedKinds(parent).map(parseGroupKind);
}

/** Whether the cluster remembers something that forbids the assignment, or nothing where it should. */
export function parentRefusal(current: KubeObject | undefined, claim: SyncClaim): ParentRefusal | undefined {
  return current === undefined ? missing(claim) : refuse(current, readParent(current), claim);
}

function readParent(parent: KubeObject): ParentRecord {
  const annotations = annotationsOf(parent);
  return {
    installationId: annotations[annotation.installation] ?? "",
    syncUid: annotations[annotation.syncUid] ?? "",
    attempt: numberFrom(annotations[annotation.attempt]),
    fence: numberFrom(annotations[annotation.fence]),
    renderDigest: annotations[annotation.renderDigest],
    revision: annotations[annotation.revision],
    token: annotations[annotation.token],
    inventory: annotations[annotation.inventory],
    attempted: digestsFrom(annotations[annotation.attempted]),
    installing: annotations[annotation.installing] === "true",
  };
}

function refuse(current: KubeObject, known: ParentRecord, claim: SyncClaim): ParentRefusal | undefined {
  const name = `ConfigMap ${parentNamespace}/${stringAt(current, "metadata", "name")}`;
  const tool = annotationsOf(current)[toolingAnnotation] ?? "";
  if (!tool.startsWith("starling/")) {
    const mark = tool === "" ? "it has none" : `its is ${JSON.stringify(tool)}`;
    const message = `${name} exists and is not Starling's by the annotation ${toolingAnnotation}: ${mark}; rename or delete it`;
    return { kind: "refuse", reason: "ForeignOwner", message };
  }
  const isAccepted = known.token !== undefined && known.token === claim.acceptedToken;
  if (!isAccepted && known.installationId !== claim.installationId) {
    const owner = known.installationId;
    return foreign(known, owner, `${name} belongs to the installation ${owner}, this is ${claim.installationId}`);
  }
  if (!isAccepted && known.syncUid !== claim.syncUid) {
    const owner = known.syncUid;
    return foreign(known, owner, `${name} belongs to the Sync with uid ${owner}, this one has ${claim.syncUid}`);
  }
  const isOurs = known.token === claim.token;
  const isKnown = isAccepted || (known.token !== undefined && claim.knownTokens.includes(known.token));
  const isInOrder = known.attempt <= claim.attempt && (!isOurs || known.fence <= claim.fence);
  if ((isOurs || isKnown) && isInOrder) return undefined;
  const theirs = `the cluster was given attempt ${known.attempt}, fence ${known.fence}`;
  const ours = `this is attempt ${claim.attempt}, fence ${claim.fence}`;
  const why =
    isOurs || isKnown
      ? "another worker is at it, or the table was restored from a backup; in that case"
      : "by rows that this table does not have: it was restored from a backup or begun anew, or a second one is in use;";
  const message = `${theirs}, ${ours}: ${why} ${recovery}`;
  return { kind: "refuse", reason: "ClusterAhead", message, remembered: rememberedOf(known) };
}

const recovery =
  "starling recover --all --dry-run shows what the clusters have, and without --dry-run goes on from there";

function foreign(known: ParentRecord, owner: string, message: string): ParentRefusal {
  const remembered = { ...rememberedOf(known), owner: foreignText(owner, maxOwner) };
  const remedy = `if that one is gone: starling recover --all --from ${quoted(remembered.owner)}`;
  return { kind: "refuse", reason: "ForeignOwner", message: `${message}; ${remedy}`, remembered };
}

function missing(claim: SyncClaim): ParentRefusal | undefined {
  if (claim.mayBeNew) return undefined;
  const name = `ConfigMap ${parentNamespace}/${parentName(claim)}`;
  const message = `${name}, by which the cluster remembers this Sync, is gone: the Sync was deleted by rows that this table does not have, the cluster was restored from a backup, or somebody deleted it; ${recovery}`;
  return { kind: "refuse", reason: "ParentMissing", message, remembered: { attempt: 0, fence: 0 } };
}

/** What goes into a row is in the form that Starling writes, or is left out. */
function rememberedOf(known: ParentRecord): Remembered {
  const { attempt, fence, token, renderDigest, revision, inventory } = known;
  return {
    attempt,
    fence,
    ...(token === undefined || !tokenForm.test(token) ? {} : { token }),
    ...(renderDigest === undefined || !digestForm.test(renderDigest) ? {} : { renderDigest }),
    ...(revision === undefined ? {} : { revision: foreignText(revision, maxRevision) }),
    ...(inventory === undefined || !digestForm.test(inventory) ? {} : { inventory }),
  };
}

function write(
  current: KubeObject | undefined,
  claim: SyncClaim,
  {
    attempted,
    kinds,
    installing,
  }: Pick<ParentRecord, "attempted" | "installing"> & { readonly kinds: ReadonlySet<string> },
): ParentDecision {
  const record: ParentRecord = {
    installationId: claim.installationId,
    syncUid: claim.syncUid,
    attempt: claim.attempt,
    fence: claim.fence,
    renderDigest: claim.renderDigest,
    revision: claim.revision,
    token: claim.token,
    inventory: claim.inventory,
    attempted,
    installing,
  };
  const resourceVersion =
    current && !isBeingDeleted(current) ? stringAt(current, "metadata", "resourceVersion") : undefined;
  const object: ManifestObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: parentName(claim),
      namespace: parentNamespace,
      ...defined({ resourceVersion }),
      labels: { ...(current ? labelsOf(current) : {}), [parentLabel]: setIdOf(claim) },
      annotations: {
        [toolingAnnotation]: tooling,
        [groupKindsAnnotation]: [...kinds].sort(compareText).join(","),
        [annotation.installation]: claim.installationId,
        [annotation.sync]: `${claim.syncNamespace}/${claim.syncName}`,
        [annotation.syncUid]: claim.syncUid,
        [annotation.attempt]: String(claim.attempt),
        [annotation.fence]: String(claim.fence),
        [annotation.token]: claim.token,
        [annotation.revision]: claim.revision,
        ...(claim.inventory === undefined ? {} : { [annotation.inventory]: claim.inventory }),
        ...(claim.renderDigest === undefined ? {} : { [annotation.renderDigest]: claim.renderDigest }),
        [annotation.attempted]: stringifyJson(attempted),
        ...(installing ? { [annotation.installing]: "true" } : {}),
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
