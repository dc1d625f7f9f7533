import { readMembers } from "#functions/rollout/fleet.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { relationOf } from "#shared/domain/rollout/plan.ts";
import { dueAtOf, dueAttributes, jittered, later, watchdogAt } from "#shared/domain/rows/due.ts";
import { keys, statePartition, syncName } from "#shared/domain/rows/keys.ts";
import type { SubjectStatus } from "#shared/domain/rows/object-rows.ts";
import type { HeadRow } from "#shared/domain/rows/rollout-rows.ts";
import { ROW_SCHEMA } from "#shared/domain/rows/row.ts";
import { isConflict } from "#shared/errors.ts";
import type { Write } from "#shared/ports.ts";

/** A subject with nothing to do is looked at this often, for joiners and for messages that were lost. */
const IDLE_SECONDS = 600;
/** And this often while clusters change outside a rollout, or just did in one: what says so is an index that lags behind. */
const CHANGING_SECONDS = 60;
const RECONCILE_PAGE = 25;

/** Nothing to roll out: the status says what the clusters show, and the head waits for its next look. */
export async function idle(known: Known, ports: PlannerPorts): Promise<Step> {
  const now = ports.clock.now();
  const settled = await clustersByState(known, ports);
  const status = subjectWrite(known.row, {
    now,
    ...(known.desired.ok ? {} : { waiting: known.desired }),
    ...(settled === undefined ? {} : { settled }),
  });
  if ("check" in status && isResting(known.head, now)) return { messages: [], again: false };
  const key = keys.head(known.subject);
  const isMoving = (settled?.changing ?? 0) > 0 || hasJustCompleted(known.head, now);
  const restSeconds = isMoving ? CHANGING_SECONDS : IDLE_SECONDS;
  const head: HeadRow = {
    ...(known.head ?? {
      ...key,
      type: "Head",
      schema: ROW_SCHEMA,
      version: 0,
      subject: known.subject,
      last: 0,
      templates: [],
      behind: [],
    }),
    version: (known.head?.version ?? 0) + 1,
    dispatches: 0,
    ...dueAttributes(key, later(now, jittered(restSeconds, `${key.pk}${now.toISOString()}`))),
  };
  await ports.table.write([
    { put: head, when: known.head === undefined ? "absent" : { version: known.head.version } },
    status,
  ]);
  return { messages: [], again: false };
}

function hasJustCompleted(head: HeadRow | undefined, now: Date): boolean {
  return head?.completedAt !== undefined && later(head.completedAt, CHANGING_SECONDS / 2) > now.toISOString();
}

/** True when the next look is set already, and not by a tick that only lent it a watchdog. */
function isResting(head: HeadRow | undefined, now: Date): boolean {
  return head?.dueKey !== undefined && head.dispatches === 0 && dueAtOf(head.dueKey) > now.toISOString();
}

/** Counts of clusters by their worst Sync, from the state index: a moment behind, put right by the next look. */
async function clustersByState(known: Known, ports: PlannerPorts): Promise<SubjectStatus["clusters"]> {
  if (known.head?.completed === undefined) return undefined;
  const worst = new Map<string, ClusterState>();
  let after: string | undefined;
  do {
    const page = await ports.table.queryIndex({
      index: "state",
      pk: statePartition(known.subject),
      ...(after === undefined ? {} : { after }),
    });
    for (const entry of page.items) {
      const [phase = "", cluster = ""] = entry.sort.split("#");
      const state = clusterStates[phase];
      const before = worst.get(cluster);
      if (state !== undefined && (before === undefined || severity.indexOf(state) > severity.indexOf(before)))
        worst.set(cluster, state);
    }
    after = page.next;
  } while (after !== undefined);
  const count = (state: ClusterState) => [...worst.values()].filter((other) => other === state).length;
  return {
    selected: worst.size,
    ready: count("ready"),
    changing: count("changing"),
    failed: count("failed"),
    unreachable: count("unreachable"),
    waiting: 0,
  };
}

type ClusterState = "ready" | "changing" | "unreachable" | "failed";
const severity: readonly ClusterState[] = ["ready", "changing", "unreachable", "failed"];
const clusterStates: Readonly<Record<string, ClusterState>> = {
  Ready: "ready",
  Assigned: "changing",
  Applying: "changing",
  Verifying: "changing",
  Retrying: "changing",
  Reachable: "unreachable",
  Unreachable: "unreachable",
  Failed: "failed",
};

/** Passes a `reconcile` on to every Sync of the subject: each is looked at now, whatever its interval. */
export async function passOnReconcile(known: Known, ports: PlannerPorts): Promise<Step | undefined> {
  const { head, row, subject } = known;
  const asked = row.operations.reconcile?.at;
  if (asked === undefined || head?.members === undefined || head.handledReconcile === asked) return undefined;
  if (row.operations.suspended !== undefined) return undefined;
  const now = ports.clock.now();
  const members = await readMembers(ports.blobs, head.members);
  const names = head.templates.map((template) => syncName(subject, template));
  const syncs = members.flatMap((member) => names.map((name) => keys.sync(member.cluster, subject.namespace, name)));
  for (let start = 0; start < syncs.length; start += RECONCILE_PAGE) {
    await Promise.all(syncs.slice(start, start + RECONCILE_PAGE).map((key) => askSync(key, asked, { now, ports })));
  }
  const next: HeadRow = { ...head, version: head.version + 1, handledReconcile: asked };
  await ports.table.write([{ put: next, when: { version: head.version } }, subjectWrite(row, { now })]);
  return { messages: members.map((member) => ({ to: "apply", cluster: member.cluster })), again: true };
}

async function askSync(
  key: { readonly pk: string; readonly sk: string },
  asked: string,
  context: { readonly now: Date; readonly ports: PlannerPorts },
) {
  try {
    await context.ports.table.update({
      update: key,
      set: { reconcileAt: asked, ...dueAttributes(key, watchdogAt(context.now, 0)) },
      add: { version: 1 },
      when: [{ attribute: "type", equals: "SyncOnCluster" }],
    });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
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
  const { dueShard: _shard, dueKey: _key, contentHash: _content, membershipHash: _membership, ...kept } = head;
  return { ...kept, version: head.version + 1, behind: [] };
}
