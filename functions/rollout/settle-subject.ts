import { type ClusterCounts, type CountedClusters, clustersByState } from "#functions/rollout/clusters-by-state.ts";
import { followReconcile } from "#functions/rollout/pass-on-reconcile.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { recallMembers } from "#functions/rollout/recall-members.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { defined } from "#shared/base/defined.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { due, dueAtOf, jittered, later } from "#shared/fleet/rows/due.ts";
import { clusterOf, keys } from "#shared/fleet/rows/keys.ts";
import type { HeadRow, Looking } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Table, Write } from "#shared/ports.ts";

/** A subject with nothing to do is looked at this often, for joiners and for messages that were lost. */
const idleSeconds = 600;
/** And this often while clusters change outside a rollout, or just did in one: what says so is an index that lags behind. */
const changingSeconds = 60;
/** An index is behind its table for so long at most, as far as anybody is told. */
const lagSeconds = changingSeconds / 2;

/**
 * Nothing to roll out: the status says what the clusters show, and the head waits for its next look.
 * @param unreadable - members that were passed by because a row of theirs cannot be read.
 */
export async function idle(known: Known, unreadable: ReadonlySet<string>, ports: PlannerPorts): Promise<Step> {
  const now = ports.clock.now();
  const list = known.head?.members;
  const { members } = list === undefined ? { members: [] } : await recallMembers(list, known.subject, ports);
  const looking = await followReconcile(known, members, ports);
  const answered = looking !== undefined && looking.looked === members.length;
  const settled = answered
    ? { selected: members.length, ...looking.counts }
    : await settledCounts(known, { members, unreadable }, ports);
  const status = subjectWrite(known.row, {
    now,
    missing: await missingClusters(known, ports.table),
    unreadable: [...unreadable].sort(),
    ...(known.desired.ok ? {} : { waiting: known.desired }),
    ...defined({ settled }),
    ...(looking === undefined ? {} : { reconcile: { number: looking.number, answered } }),
  });
  const moved = looking?.looked !== known.head?.looking?.looked;
  if ("check" in status && !moved && isResting(known.head, now)) return { messages: [], again: false };
  const isMoving = looking !== undefined || (settled?.changing ?? 0) > 0 || hasJustCompleted(known.head, now);
  const restSeconds = isMoving ? changingSeconds : idleSeconds;
  const { looking: _before, ...kept } = known.head ?? newHead(known);
  const next: HeadRow = {
    ...kept,
    ...(looking === undefined || answered ? {} : { looking }),
    ...(answered ? { lately: seenLately(looking, now) } : {}),
    version: (known.head?.version ?? 0) + 1,
  };
  const head = due(next, later(now, jittered(restSeconds, `${next.pk}${now.toISOString()}`)), 0);
  await ports.table.write([
    { put: head, when: known.head === undefined ? "absent" : { version: known.head.version } },
    status,
  ]);
  return { messages: [], again: false };
}

function newHead({ subject }: Known): HeadRow {
  const key = keys.head(subject);
  return { ...key, type: "Head", schema: rowSchema, version: 0, subject, last: 0, templates: [], behind: [] };
}

function seenLately({ counts }: Looking, now: Date): NonNullable<HeadRow["lately"]> {
  return { at: now.toISOString(), failed: counts.failed, unreachable: counts.unreachable };
}

/** As the index has it; what was seen for certain a moment ago and is worse is believed until the index has had time. */
async function settledCounts(
  known: Known,
  clusters: CountedClusters,
  ports: PlannerPorts,
): Promise<ClusterCounts | undefined> {
  const { head } = known;
  if (head?.completed === undefined) return undefined;
  const counts = await clustersByState(known, clusters, ports.table);
  const { lately } = head;
  if (lately === undefined || later(lately.at, lagSeconds) <= ports.clock.now().toISOString()) return counts;
  const failed = Math.max(counts.failed, lately.failed);
  const unreachable = Math.max(counts.unreachable, lately.unreachable);
  const ready = Math.max(0, counts.ready - (failed - counts.failed) - (unreachable - counts.unreachable));
  // A Sync that the index does not have yet is on its way there.
  return { ...counts, ready, failed, unreachable, waiting: 0, changing: counts.changing + counts.waiting };
}

/** Clusters that the subject selects by name and that are not registered. */
async function missingClusters(known: Known, table: Table): Promise<readonly string[]> {
  const { names = [], notNames = [] } = relationOf(known.row).clusters;
  const wanted = names.filter((name) => !notNames.includes(name));
  if (wanted.length === 0) return [];
  const rows = await table.getMany(
    wanted.map((name) => keys.fleet(name)),
    { newer: "kept" },
  );
  const registered = new Set(rows.map(clusterOf));
  return wanted.filter((name) => !registered.has(name));
}

function hasJustCompleted(head: HeadRow | undefined, now: Date): boolean {
  return head?.completedAt !== undefined && later(head.completedAt, lagSeconds) > now.toISOString();
}

/** True when the next look is set already, and not by a tick that only lent it a watchdog. */
function isResting(head: HeadRow | undefined, now: Date): boolean {
  return head?.dueKey !== undefined && head.dispatches === 0 && dueAtOf(head.dueKey) > now.toISOString();
}

/** The last step of a deletion: nothing is left in any cluster, so the subject and its directory entries go. */
export async function farewell(known: Known, ports: PlannerPorts): Promise<Step> {
  const { subject, row, head } = known;
  const uses = relationOf(row).templates.map((template) => template.source);
  const writes: Write[] = [
    { delete: { pk: row.pk, sk: row.sk }, when: { version: row.version } },
    { delete: keys.subject(subject) },
    ...[...new Set(uses)].map((name) => ({ delete: keys.uses({ namespace: subject.namespace, name }, subject) })),
  ];
  if (head !== undefined) writes.push({ put: resting(head), when: { version: head.version } });
  await ports.table.write(writes);
  return { messages: [], again: false };
}

/** The head stays, so that numbers are not used twice when a subject of this name comes again. */
function resting(head: HeadRow): HeadRow {
  const { contentHash: _content, membershipHash: _membership, ...kept } = due(head, undefined);
  return { ...kept, version: head.version + 1, behind: [] };
}
