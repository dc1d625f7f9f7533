import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { configMapKind, namespaceKind } from "#shared/kube/engine/core-kinds.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type KubeObject, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import {
  holdsClaim,
  memoryOf,
  nextParent,
  type ParentDecision,
  type ParentRecord,
  type ParentRefusal,
  parentName,
  parentNamespace,
  type Remembered,
  type SetKnowledge,
  type SetMemory,
  type SyncClaim,
} from "#shared/kube/parent-object.ts";

type RefusalReason = "IdentityMismatch" | ParentRefusal["reason"];

export type ParentResult =
  | { readonly kind: "written"; readonly record: ParentRecord; readonly clusterUid: string }
  | {
      readonly kind: "refused";
      readonly reason: RefusalReason;
      readonly message: string;
      /** The uid of the refusing cluster, when it is the expected one. */
      readonly clusterUid?: string;
      /** The values that the cluster remembers instead. */
      readonly remembered?: Remembered;
      /** The uid of another cluster that answered. */
      readonly otherUid?: string;
    };

export interface ParentRequest extends SetKnowledge {
  readonly claim: SyncClaim;
  /** The uid of the cluster's kube-system; absent the first time, when the answer supplies it. */
  readonly expectedClusterUid?: string;
  /** Reads that have already begun. */
  readonly reads?: ParentReads;
}

/** The first reads of an attempt, which run concurrently. */
export interface ParentReads {
  readonly clusterUid: Promise<string | undefined>;
  readonly parent: Promise<KubeObject | undefined>;
}

/** Errors reach the caller who awaits the reads. */
export function beginParent(client: ClusterClient, claim: SyncClaim): ParentReads {
  const reads = { clusterUid: clusterUidOf(client), parent: client.get(configMapKind, parentKey(claim)) };
  for (const read of Object.values(reads)) read.catch(() => {});
  return reads;
}

/** How often another writer may interfere before Starling gives up. Each time the decision is made again. */
const maxConflicts = 5;

/**
 * Begins an attempt in the cluster: checks the cluster's identity, and writes into the Sync's parent object which
 * worker works on which assignment. Nothing is written when the identity differs or the parent refuses.
 * @throws KubeError when the cluster cannot be read or written.
 */
export async function ensureParent(client: ClusterClient, request: ParentRequest): Promise<ParentResult> {
  const { reads = beginParent(client, request.claim) } = request;
  // The identity is checked first, also when the cluster does not allow reading the parent.
  const clusterUid = (await reads.clusterUid) ?? "";
  const { expectedClusterUid = clusterUid } = request;
  if (clusterUid === "" || clusterUid !== expectedClusterUid) {
    const message = "the cluster's uid has changed, so that this is a different cluster";
    const other = clusterUid === "" ? {} : { otherUid: clusterUid };
    return { kind: "refused", reason: "IdentityMismatch", message, ...other };
  }
  const decide = (current: KubeObject | undefined) => nextParent(current, request.claim, request);
  const result = await writeParent(client, { claim: request.claim, first: reads.parent, decide });
  if (result.kind === "write") return { kind: "written", record: result.record, clusterUid };
  const { kind: _kind, ...refusal } = result;
  return { kind: "refused", ...refusal, clusterUid };
}

/**
 * The cluster's memory of the set; undefined when it has no parent, or when the parent belongs to another Sync.
 */
export async function readMemory(client: ClusterClient, claim: SyncClaim): Promise<SetMemory | undefined> {
  return memoryOf(await client.get(configMapKind, parentKey(claim)), claim);
}

/** Whether the cluster's newest claim is this one. It is checked before every deletion. */
export async function stillHolds(client: ClusterClient, claim: SyncClaim): Promise<boolean> {
  return holdsClaim(await client.get(configMapKind, parentKey(claim)), claim);
}

/** Deletes the parent of a Sync without members. The parent of another claim stays. */
export async function deleteParent(client: ClusterClient, claim: SyncClaim): Promise<void> {
  const parent = await client.get(configMapKind, parentKey(claim));
  const uid = stringAt(parent, "metadata", "uid");
  if (uid === undefined || !holdsClaim(parent, claim)) return;
  try {
    await client.delete(configMapKind, parentKey(claim), { uid });
  } catch (error) {
    if (error instanceof KubeError && (error.class === "notFound" || error.class === "replaced")) return;
    throw error;
  }
}

async function createParent(client: ClusterClient, parent: ManifestObject): Promise<void> {
  await ensureNamespace(client);
  await client.create(configMapKind, parent);
}

async function ensureNamespace(client: ClusterClient): Promise<void> {
  const key = { namespace: "", name: parentNamespace };
  if (await client.get(namespaceKind, key, { metadataOnly: true })) return;
  try {
    await client.create(namespaceKind, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: parentNamespace, labels: { "app.kubernetes.io/managed-by": "starling" } },
    });
  } catch (error) {
    if (error instanceof KubeError && error.class === "conflict") return;
    throw error;
  }
}

interface ParentWriting {
  readonly claim: SyncClaim;
  /** The object as it was already read. */
  readonly first: Promise<KubeObject | undefined>;
  readonly decide: (current: KubeObject | undefined) => ParentDecision;
}

async function writeParent(client: ClusterClient, { claim, first, decide }: ParentWriting): Promise<ParentDecision> {
  for (let conflict = 0; ; conflict += 1) {
    const current = await (conflict === 0 ? first : client.get(configMapKind, parentKey(claim)));
    const decision = decide(current);
    if (decision.kind === "refuse") return decision;
    try {
      if (current === undefined) await createParent(client, decision.object);
      else await client.replace(configMapKind, decision.object);
      return decision;
    } catch (error) {
      const lost = error instanceof KubeError && (error.class === "conflict" || error.class === "notFound");
      if (!lost || conflict >= maxConflicts) throw error;
    }
  }
}

function parentKey(claim: SyncClaim) {
  return { namespace: parentNamespace, name: parentName(claim) };
}

/**
 * The form of a uid of Kubernetes. Any other text may come from some other server, and must not get into a row or a
 * command to type.
 */
const uid = /^[A-Za-z0-9-]{1,64}$/;

/**
 * The uid of the cluster's namespace kube-system, which never changes; undefined when the cluster has none.
 * @throws KubeError when the cluster cannot be read.
 */
export async function clusterUidOf(client: Pick<ClusterClient, "get">): Promise<string | undefined> {
  const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, { metadataOnly: true });
  const found = stringAt(system, "metadata", "uid");
  return found !== undefined && uid.test(found) ? found : undefined;
}
