import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import { clusterStateOf, everySyncName, noClusters, syncNames, worseOf } from "#functions/rollout/clusters-by-state.ts";
import type { StoredMember } from "#functions/rollout/fleet.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { recallMembers } from "#functions/rollout/recall-members.ts";
import { readRenderings } from "#functions/rollout/rendered-since.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { isConflict } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/decision.ts";
import { inputDigest, relationOf } from "#shared/fleet/rollout/plan.ts";
import { dueAttributes, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { HeadRow, Looking } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Message } from "#shared/messages.ts";

/** Clusters asked, or asked about, at once. */
const pageSize = 25;

/** Passes a `reconcile` on to every Sync of the subject: each is looked at now, whatever its interval. */
export async function passOnReconcile(known: Known, ports: PlannerPorts): Promise<Step | undefined> {
  const { head, row, subject } = known;
  const asked = row.operations.reconcile?.number;
  if (asked === undefined || head?.members === undefined || head.handledReconcile === asked) return undefined;
  if (row.operations.suspended !== undefined) return undefined;
  const now = ports.clock.now();
  const members = (await recallMembers(head.members, subject, ports)).members;
  const names = everySyncName(known);
  for (const page of inParts(members, pageSize)) {
    const syncs = page.flatMap(({ cluster }) => names.map((name) => keys.sync(cluster, subject.namespace, name)));
    await Promise.all(syncs.map((key) => askSync(key, asked, { now, ports })));
  }
  const rendering = await askThoseThatRest(known, members, ports);
  const { selected: _selected, ...none } = noClusters;
  const looking: Looking = { number: asked, since: now.toISOString(), looked: 0, counts: none };
  const next: HeadRow = { ...head, version: head.version + 1, handledReconcile: asked, looking };
  const reconcile = { number: asked, answered: false };
  await ports.table.write([{ put: next, when: { version: head.version } }, subjectWrite(row, { now, reconcile })]);
  const looks = members.map(({ cluster }): Message => ({ to: "apply", cluster }));
  return { messages: [...rendering, ...looks], again: true };
}

/** Clusters that could be assigned nothing are looked at by nobody: their renderings are asked for once more. */
async function askThoseThatRest(
  { subject, head, desired }: Known,
  members: readonly StoredMember[],
  ports: PlannerPorts,
): Promise<readonly Message[]> {
  if (!desired.ok) return [];
  const names = new Set(head?.unassigned);
  const requests = members.flatMap(({ cluster, inputs }) => {
    if (!names.has(cluster)) return [];
    return desired.plan.templates.flatMap(({ source }, index): RenderingRequest[] => {
      const input = inputs[index];
      return input === undefined || "problem" in input ? [] : [{ input: inputDigest(input), source, ...input }];
    });
  });
  const distinct = new Map(requests.map((request) => [request.input, request]));
  const renderings = await readRenderings([...distinct.keys()], ports.table);
  const resting = [...distinct.values()].filter(({ input }) => renderings.get(input)?.restsUntil !== undefined);
  return askRenderings({ subject, requests: resting, renderings }, ports);
}

async function askSync(
  key: { readonly pk: string; readonly sk: string },
  asked: number,
  context: { readonly now: Date; readonly ports: PlannerPorts },
) {
  try {
    await context.ports.table.update({
      update: key,
      set: { reconcile: asked, ...dueAttributes(key, watchdogAt(context.now, 0)) },
      add: { version: 1 },
      when: [
        { attribute: "type", equals: "SyncOnCluster" },
        { attribute: "schema", lessThan: rowSchema + 1 },
      ],
    });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/**
 * Who has been looked at since the `reconcile` that was passed on last, cluster by cluster in their order: by the number
 * that the worker says it has handled. What the state index says may be from before.
 * @returns undefined when there is none, or all have been.
 */
export async function followReconcile(
  known: Known,
  members: readonly StoredMember[],
  ports: PlannerPorts,
): Promise<Looking | undefined> {
  const before = known.head?.looking;
  if (before === undefined) return undefined;
  const now = ports.clock.now();
  // A suspension spends no deadline: workers stand still meanwhile.
  if (known.row.operations.suspended !== undefined) return { ...before, since: now.toISOString() };
  const seconds = secondsOf(relationOf(known.row).rollout.progressDeadline);
  const isLate = later(before.since, seconds) <= now.toISOString();
  const names = everySyncName(known);
  const wantedNames = new Set(syncNames(known));
  const unassigned = new Set(known.head?.unassigned);
  let looking = before;
  while (looking.looked < members.length) {
    const page = members.slice(looking.looked, looking.looked + pageSize);
    const wanted = page.flatMap(({ cluster }) =>
      names.map((name) => keys.sync(cluster, known.subject.namespace, name)),
    );
    const found = await ports.table.getMany(wanted, { newer: "kept" });
    const syncs = found.filter((row) => row.type === "SyncOnCluster");
    const rows = Map.groupBy(syncs, (row) => row.cluster);
    for (const { cluster } of page) {
      const state = stateSince(rows.get(cluster) ?? [], { number: before.number, names: wantedNames });
      // Who waits longer than a cluster may take waits for nobody; the time begins anew with every one that is done.
      if (state === undefined && !isLate) return looking === before ? before : { ...looking, since: now.toISOString() };
      const counted = unassigned.has(cluster) ? "failed" : (state ?? "changing");
      const counts = { ...looking.counts, [counted]: looking.counts[counted] + 1 };
      looking = { ...looking, looked: looking.looked + 1, counts };
    }
  }
  return looking;
}

/** @returns undefined when the cluster has not been looked at since, or is still changing because of it. */
function stateSince(
  syncs: readonly SyncRow[],
  asked: { readonly number: number; readonly names: ReadonlySet<string> },
): keyof Looking["counts"] | undefined {
  const found = syncs.filter((sync) => asked.names.has(sync.name)).length;
  let worst: keyof Looking["counts"] = found < asked.names.size ? "waiting" : "ready";
  for (const { desired, observed } of syncs) {
    if (desired.action === "orphan") {
      worst = worseOf(worst, "waiting");
      continue;
    }
    if (observed?.attempt !== desired.attempt) return undefined;
    const state = clusterStateOf(observed.phase) ?? "ready";
    // It waits for the planner's word, not for a worker's look.
    const waitsForTurn = observed.phase === "Reachable" && desired.action !== "delete";
    if (!waitsForTurn && !((observed.handledReconcile ?? 0) >= asked.number)) return undefined;
    if (observed.phase === "Applying" || observed.phase === "Verifying") return undefined;
    worst = worseOf(worst, state);
  }
  return worst;
}
