/** The changes that a guard would withhold if a SyncGroup were written: the caller passes them by their hashes. */

import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { documentReference, objectText } from "#functions/api/request/reference.ts";
import type { Consequences } from "#functions/api/write/consequences.ts";
import type { WrittenRow } from "#functions/api/write/object-change.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import { storedList } from "#shared/adapters/stored-list.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { type Member, membersOf, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { afterRead, membersWithheld, withDefaultGuard, withheldText } from "#shared/fleet/rollout/guard.ts";
import { guardedMembers } from "#shared/fleet/rollout/guarded-members.ts";
import { guardNow } from "#shared/fleet/rollout/guarded-templates.ts";
import { clusterOfKey, keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

type Asking = Pick<ApiPorts, "table" | "blobs" | "clock" | "defaultGuard">;

interface Asked {
  readonly document: Document;
  readonly before: WrittenRow | undefined;
  /** Hashes that the caller approves. */
  readonly approved: readonly string[];
}

/**
 * The changes that the guard in force, or the document's own, would withhold. A change that waits already is not asked
 * again, unless the caller approves it here.
 */
export async function guardedChanges(
  ports: Asking,
  { document, before, approved }: Asked,
): Promise<readonly WithheldChange[]> {
  if (document.kind !== "SyncGroup" || before?.type !== "SyncGroup") return [];
  const owner: Owner = { namespace: before.namespace, kind: "SyncGroup", name: before.name };
  const guarded = withDefaultGuard(before, ports.defaultGuard);
  const edited = withDefaultGuard({ ...before, spec: document.spec }, ports.defaultGuard);
  if (guarded.spec.guard === undefined && edited.spec.guard === undefined) return [];
  const rolloutState = await readRow(ports.table, keys.rolloutState(owner));
  if (rolloutState === undefined || isNewer(rolloutState) || rolloutState.uid !== before.uid) return [];
  const now = ports.clock.now();
  // The planner may not have read the guard that stands: it is in force for this edit all the same.
  const guard = afterRead({ row: guarded, guard: rolloutState.guard, now });
  const after: Edited = {
    row: edited,
    rolloutState: guard === undefined ? rolloutState : { ...rolloutState, guard },
    owner,
    now,
  };
  const templates = await templatesAsked(ports, after);
  const members =
    canonicalJson(before.spec.clusters) === canonicalJson(document.spec.clusters)
      ? []
      : await membersAsked(ports, after);
  const stands = new Set(rolloutState.guard?.withheld.map(({ hash }) => hash)).difference(new Set(approved));
  return [...templates, ...members].filter(({ hash }) => !stands.has(hash));
}

interface Edited {
  readonly row: SyncGroupRow;
  readonly rolloutState: RolloutStateRow;
  readonly owner: Owner;
  readonly now: Date;
}

async function templatesAsked({ table }: Asking, edited: Edited): Promise<readonly WithheldChange[]> {
  const { rolloutState, owner } = edited;
  const rollout = rolloutState.last === 0 ? undefined : await table.get(keys.rollout(owner, rolloutState.last));
  if (rollout === undefined) return [];
  const guard = guardNow({ ...edited, rollouts: new Map([[rollout.number, rollout]]) });
  return guard?.withheld.filter(({ kind }) => kind === "templates") ?? [];
}

async function membersAsked({ table, blobs }: Asking, { row, rolloutState, owner, now }: Edited) {
  const guard = afterRead({ row, guard: rolloutState.guard, now });
  if (guard === undefined || rolloutState.members === undefined) return [];
  const former = await storedList<Member>(blobs, rolloutState.members);
  const fleet = await Array.fromAsync(allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })));
  const readable = fleet.filter((one) => !isNewer(one));
  const unreadable = new Set(fleet.filter(isNewer).map(clusterOfKey));
  // A cluster that cannot be read is never absent.
  const unread = former.filter(({ cluster }) => unreadable.has(cluster));
  const found = [...membersOf(relationOf(row), readable, rolloutState.membersVersion), ...unread];
  const guarded = await guardedMembers({
    facts: { row, guard, now },
    rolloutState: { last: rolloutState.last, members: rolloutState.members },
    former,
    found,
    isRegistered: (cluster) => readable.some(({ name }) => name === cluster),
    withSyncs: async () => new Set((await stateEntries(owner, table)).map(({ cluster }) => cluster)),
  });
  return membersWithheld(guarded.guard);
}

/** The question about one of them. */
export function guardQuestion(document: Document, withheld: WithheldChange): Consequences {
  const { hash, count } = withheld;
  const group = objectText(documentReference(document));
  const message = `${group}: ${withheldText(withheld)}; --guard-hash ${hash} approves it`;
  return { message, syncs: count, clusters: count, guardHash: hash };
}
