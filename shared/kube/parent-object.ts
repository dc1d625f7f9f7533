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

/** A cluster's memory of a Sync. Anyone may have written the texts. */
export interface Remembered {
  /** Absent when the cluster remembers nothing. */
  readonly token?: string;
  readonly attempt: number;
  readonly fence: number;
  readonly renderDigest?: string;
  readonly revision?: string;
  /** The inventory that was stored before the assignment began. */
  readonly inventory?: string;
  /** The owner, if it is not this Sync: an installation's id, or the uid of another Sync. */
  readonly owner?: string;
}

/**
 * Whether nobody owns the parent, or only the owner that a user declares gone. @param from - an installation's id, or
 * the uid of a Sync.
 */
export function mayTakeOver({ owner }: Pick<Remembered, "owner">, from: string | undefined): boolean {
  return owner === undefined || owner === from;
}

/** The namespace of all parent objects. Starling creates it and never deletes it. */
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

/**
 * The limit of attempts without a complete inventory. Beyond it, the oldest are forgotten, because an annotation is not
 * a log.
 */
const maxAttempted = 20;

const tokenForm = /^[0-9A-Za-z_-]{1,64}$/;
const maxOwner = 200;
const maxRevision = 300;
const digestForm = /^sha256:[0-9a-f]{1,64}$/;

/** The worker, and the assignment of the Sync that it works on. It is written to the cluster before anything else. */
export interface SyncClaim {
  /** The id of this installation of Starling. */
  readonly installationId: string;
  readonly syncNamespace: string;
  readonly syncName: string;
  /** The uid of the Sync on this cluster. */
  readonly syncUid: string;
  /** The number of the planner's assignment; it only grows. */
  readonly attempt: number;
  /** The number of the worker's lease on the cluster; it only grows. */
  readonly fence: number;
  /** The digest of the rendering to apply; absent when the Sync is being deleted. */
  readonly renderDigest?: string;
  readonly revision: string;
  /** The assignment's token, which nobody can guess. */
  readonly token: string;
  /** The tokens of earlier assignments. The cluster may remember any of them. */
  readonly knownTokens: readonly string[];
  /** The token of an assignment that a user accepted, whoever owned it. */
  readonly acceptedToken?: string | undefined;
  /** The digest of the stored inventory. Everything that is applied from now on is in `attempted`. */
  readonly inventory?: string;
  /** Whether the cluster may remember nothing; false after this table has written to it. */
  readonly mayBeNew: boolean;
}

/** The content of the parent in the cluster. */
export interface ParentRecord {
  readonly installationId: string;
  readonly syncUid: string;
  readonly attempt: number;
  readonly fence: number;
  readonly renderDigest: string | undefined;
  readonly revision: string | undefined;
  readonly token: string | undefined;
  readonly inventory: string | undefined;
  /**
   * Renderings that were attempted since the last complete inventory. They may have left objects that the inventory
   * does not know.
   */
  readonly attempted: readonly string[];
  /** Whether the first install had not ended when this was written. */
  readonly installing: boolean;
}

/** Whether the first install is in progress, or the set was already installed. */
export type RememberedInstall = "underWay" | "over";

/** The parent's knowledge of the set. */
export interface SetMemory {
  /** Digests of the last rendering, and of renderings that may have left objects behind. */
  readonly renderings: readonly string[];
  /** Every kind that a member can have. */
  readonly groupKinds: readonly GroupKind[];
}

/** Knowledge of the set from other places than its parent. */
export interface SetKnowledge {
  /** The kinds of the objects to apply, and of the inventory's objects. */
  readonly groupKinds: readonly GroupKind[];
  /** The newest attempt after which the stored inventory contained every member; absent when there was none. */
  readonly settledThrough?: number;
  /** Digests of renderings attempted up to then that may have left objects nevertheless. */
  readonly unsettled?: readonly string[] | undefined;
  /** Whether a first install begins; absent when nothing is applied, and the value stays. */
  readonly installing?: boolean;
  /** The newest attempt for which the rows have lost their observations. */
  readonly keptThrough?: number | undefined;
}

export type ParentDecision =
  | { readonly kind: "write"; readonly object: ManifestObject; readonly record: ParentRecord }
  | ParentRefusal;

export interface ParentRefusal {
  readonly kind: "refuse";
  readonly reason: Among<"ForeignOwner" | "ClusterAhead" | "ParentMissing">;
  readonly message: string;
  /** The memory that a user may accept; absent when the parent belongs to another tool. */
  readonly remembered?: Remembered;
}

/** The name of a Sync's ConfigMap: readable, unique, and a DNS name of at most 253 characters. */
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

/** The id of a set by KEP-3659: `applyset-<base64url(sha256("<name>.<namespace>.<kind>.<group>"))>-v1`. */
export function setIdOf(claim: Pick<SyncClaim, "syncNamespace" | "syncName">): string {
  const parent = `${parentName(claim)}.${parentNamespace}.ConfigMap.`;
  return `applyset-${createHash("sha256").update(parent).digest("base64url")}-v1`;
}

/**
 * Decides how the parent changes at the start of an attempt, or refuses the attempt. `ForeignOwner`: the parent belongs
 * to another tool, installation or Sync. `ClusterAhead`: the parent names an assignment that these rows do not know, or
 * a newer worker; then this worker has lost its lease, or the table was restored from a backup. `ParentMissing`: these
 * rows have written a parent, and it is gone.
 *
 * The rendering's digest is added to `attempted` before any of its objects is written. Digests up to the attempt whose
 * inventory is complete are removed, because they are certain. They stay if nobody searched for their objects, or if a
 * correction of drift happened since and no inventory was stored.
 */
export function nextParent(current: KubeObject | undefined, claim: SyncClaim, known: SetKnowledge): ParentDecision {
  const before = current === undefined ? undefined : readParent(current);
  const refusal = parentRefusal(current, claim);
  if (refusal) return refusal;
  const settled = before === undefined || (before.attempt <= (known.settledThrough ?? 0) && isStored(before, claim));
  const uncertain = settled ? (known.unsettled ?? []) : before.attempted;
  const attempted = uncertain.filter((digest) => digest !== claim.renderDigest);
  if (claim.renderDigest !== undefined) attempted.push(claim.renderDigest);
  // A parent older than the settled attempt comes from a restored cluster, together with other members.
  const isRestored = before !== undefined && before.attempt < (known.settledThrough ?? 0);
  const earlier = settled && !isRestored ? [] : containedKinds(current);
  const kinds = new Set([...earlier, ...known.groupKinds.map(formatGroupKind)]);
  const { installing = rememberedInstall(current, claim, known.keptThrough) === "underWay" } = known;
  return write(current, claim, { attempted: attempted.slice(-maxAttempted), kinds, installing });
}

/**
 * Whether an inventory was stored since the last claim. A correction of drift after the claim may not be in the older
 * inventory.
 */
function isStored(before: ParentRecord, claim: SyncClaim): boolean {
  return before.inventory === undefined || before.inventory !== claim.inventory;
}

/** Whether the parent is still as this worker wrote it. It is checked before every deletion. */
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

/** The parent's knowledge of the set, for a worker without an inventory; undefined when it belongs to another Sync. */
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
 * Whether a rendering of the set was applied to the cluster before, also by rows that have lost it or by another
 * installation. Then the next apply is not a first install, whatever the inventory lacks.
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

/** Every kind that a member can have, according to any existing parent; empty without one. */
export function memberKindsOf(parent: KubeObject | undefined): readonly GroupKind[] {
  return containedKinds(parent).map(parseGroupKind);
}

/** Whether the cluster remembers something that forbids the assignment, or lacks what it should remember. */
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
    const mark = tool === "" ? "the annotation is missing" : `its value is ${JSON.stringify(tool)}`;
    const message = `${name} does not belong to Starling according to the annotation ${toolingAnnotation}: ${mark}; rename or delete the ConfigMap`;
    return { kind: "refuse", reason: "ForeignOwner", message };
  }
  const isAccepted = known.token !== undefined && known.token === claim.acceptedToken;
  if (!isAccepted && known.installationId !== claim.installationId) {
    const owner = known.installationId;
    return foreign(
      known,
      owner,
      `${name} belongs to the installation ${owner}, but this is the installation ${claim.installationId}`,
    );
  }
  if (!isAccepted && known.syncUid !== claim.syncUid) {
    const owner = known.syncUid;
    return foreign(
      known,
      owner,
      `${name} belongs to the Sync with the uid ${owner}, but this Sync has the uid ${claim.syncUid}`,
    );
  }
  const isOurs = known.token === claim.token;
  const isKnown = isAccepted || (known.token !== undefined && claim.knownTokens.includes(known.token));
  const isInOrder = known.attempt <= claim.attempt && (!isOurs || known.fence <= claim.fence);
  if ((isOurs || isKnown) && isInOrder) return undefined;
  const theirs = `the cluster has attempt ${known.attempt}, fence ${known.fence}`;
  const ours = `this is attempt ${claim.attempt}, fence ${claim.fence}`;
  const why =
    isOurs || isKnown
      ? "another worker has written to the cluster, or the table was restored from a backup; in the second case,"
      : "this table has no rows of that attempt: the table was restored from a backup or is new, or a second table is in use;";
  const message = `${theirs}, ${ours}: ${why} ${recovery}`;
  return { kind: "refuse", reason: "ClusterAhead", message, remembered: rememberedOf(known) };
}

const recovery =
  "`starling recover --all --dry-run` shows what the clusters remember, and `starling recover --all` continues from there";

function foreign(known: ParentRecord, owner: string, message: string): ParentRefusal {
  const remembered = { ...rememberedOf(known), owner: foreignText(owner, maxOwner) };
  const remedy = `if that owner no longer exists, run \`starling recover --all --from ${quoted(remembered.owner)}\``;
  return { kind: "refuse", reason: "ForeignOwner", message: `${message}; ${remedy}`, remembered };
}

function missing(claim: SyncClaim): ParentRefusal | undefined {
  if (claim.mayBeNew) return undefined;
  const name = `ConfigMap ${parentNamespace}/${parentName(claim)}`;
  const message = `${name}, with which the cluster remembers this Sync, is missing: an installation with other rows deleted the Sync, the cluster was restored from a backup, or someone deleted the ConfigMap; ${recovery}`;
  return { kind: "refuse", reason: "ParentMissing", message, remembered: { attempt: 0, fence: 0 } };
}

/** A row only stores values in the form that Starling writes. */
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

/** An unreadable list counts as empty. Editing a parent by hand only loses the memory of failed attempts. */
function digestsFrom(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  try {
    const list = parseJson(text);
    const digests = Array.isArray(list) ? list.filter((digest) => typeof digest === "string") : [];
    // The digests become names of blobs, and anyone who can write to the parent could name any blob.
    return digests.filter((digest) => digestForm.test(digest));
  } catch {
    return [];
  }
}
