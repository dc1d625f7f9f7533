/**
 * A cluster's worker: it takes the lease, reads everything about the cluster in one query, works on the due Syncs,
 * writes the observations, and releases the lease. It never waits: a delayed message or the tick checks again what is
 * not ready.
 */
import { isElsewhere } from "#functions/apply/cluster/is-elsewhere.ts";
import type { ClusterConnector, WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { HeldLease, leaseEnd } from "#functions/apply/lease/held-lease.ts";
import { abandonLease, acquireInCommonLane, acquireLease, reportFailure } from "#functions/apply/lease/lease.ts";
import { commitAndRelease } from "#functions/apply/worker/commit.ts";
import { planTurns } from "#functions/apply/worker/plan-turns.ts";
import { type ClusterReading, readCluster } from "#functions/apply/worker/read-cluster.ts";
import { renewClusterBlobs } from "#functions/apply/worker/renew-cluster-blobs.ts";
import { noTurns, type TurnsTaken, takeSyncTurns } from "#functions/apply/worker/take-sync-turns.ts";
import { defined } from "#shared/base/defined.ts";
import { isSlow, type PlaceUse, stayMs } from "#shared/fleet/rows/place-use.ts";
import { type Routine, routineAfter, routineOf } from "#shared/fleet/rows/routine.ts";
import { distinctMessages, type Message } from "#shared/messages.ts";

/** Milliseconds at the end of an invocation that are kept for the last writes. */
const reserveMs = 10_000;

const maxPasses = 10;

interface Budget {
  /** The time that is left of the invocation. */
  readonly remainingMs: number;
  /** How often the message about the cluster was received; absent when no message can come back. */
  readonly receives?: number;
  /** When that message was sent. */
  readonly sentAt?: Date;
  /** The queue of that message. */
  readonly lane: Lane;
}

/** @returns the seconds after which the message comes back; undefined when the message is done. */
export async function workCluster(cluster: string, budget: Budget, given: WorkerPorts): Promise<number | undefined> {
  const { lane } = budget;
  const ports = lane === "slow" ? given : { ...given, connector: hurried(given.connector) };
  const started = ports.clock.now();
  const until = new Date(started.getTime() + budget.remainingMs);
  const wish = { owner: ports.ids.unique(), now: started, until: leaseEnd(started, until) };
  const acquire = lane === "slow" ? acquireLease : acquireInCommonLane;
  const taken = await acquire(cluster, wish, ports.table);
  if (taken === "slow") await ports.sender.send([{ to: "applySlow", cluster }]);
  if (taken === undefined || taken === "slow") return undefined;
  const ends = until.getTime() - Math.min(reserveMs, budget.remainingMs / 2);
  const leaves = lane === "slow" ? ends : started.getTime() + stayMs(taken.use, started);
  const deadline = new Date(Math.min(ends, leaves));
  const lease = new HeldLease(taken, until, ports);
  const messages: Message[] = [];
  let own: Message | undefined;
  try {
    for (let pass = 1; pass === 1 || (await lease.again()); pass++) {
      const common = { lease, deadline, ports, messages, ...defined({ sentAt: budget.sentAt }) };
      const done = await onePass(cluster, { ...common, isFirst: pass === 1 });
      const isUp = lease.keptWaiting || ports.clock.now() >= deadline;
      const last = done.released || pass === maxPasses || isUp;
      if (last && !done.released) await abandonLease(lease.left, lease.routine, ports.table);
      if (last && (!done.released || done.unfinished)) messages.push({ to: "apply", cluster });
      if (last) break;
    }
    own = nextOwn(messages, { ...budget, cluster, next: laneOf(lease.left.use, ports.clock.now()) });
  } catch (error) {
    // When the table itself failed, the next worker has no reason for caution.
    await reportFailure(lease.lease, ports.table).catch(() => {});
    throw error;
  } finally {
    lease.stop();
    // A pass that failed half-way reports as well: the next pass would not report what this one wrote.
    const others = distinctMessages(messages).filter((message) => !isSame(message, own));
    await ports.sender.send(inLane(others, { cluster, lane: laneOf(lease.left.use, ports.clock.now()) }));
  }
  return own && (own.delaySeconds ?? 0);
}

/**
 * Number of times that a message serves as its own next one: a worker that dies with it later must have tries left
 * before the dead-letter queue.
 */
const mostReturns = 2;

/** The age of a message counts from when it was sent: a longer life would look like a queue that stands still. */
const longestReturnSeconds = 60;

interface OwnMessage extends Pick<Budget, "receives" | "lane"> {
  readonly cluster: string;
  /** The lane for the cluster's next work. */
  readonly next: Lane;
}

/** Instead of the first message about the cluster, the received message comes back to its own queue, and none is sent. */
function nextOwn(
  messages: readonly Message[],
  { cluster, receives = Number.POSITIVE_INFINITY, lane, next }: OwnMessage,
): Message | undefined {
  if (receives > mostReturns || (lane === "common" && next === "slow")) return undefined;
  const own = messages.filter((message) => message.to === "apply" && message.cluster === cluster);
  const [first] = own.sort((a, b) => (a.delaySeconds ?? 0) - (b.delaySeconds ?? 0));
  return (first?.delaySeconds ?? 0) <= longestReturnSeconds ? first : undefined;
}

function isSame(message: Message, other: Message | undefined): boolean {
  return JSON.stringify(message) === JSON.stringify(other);
}

interface Pass {
  readonly lease: HeldLease;
  readonly deadline: Date;
  readonly ports: WorkerPorts;
  /**
   * Messages to send at the end. A message about a row that was not written is harmless, because its receiver reads the
   * row.
   */
  readonly messages: Message[];
  readonly sentAt?: Date;
  /** True for the first work of this invocation. */
  readonly isFirst: boolean;
}

interface PassResult {
  /** False when another worker wanted the lease meanwhile: the rows are read again. */
  readonly released: boolean;
  /** True when not every due Sync had its turn. */
  readonly unfinished: boolean;
}

async function onePass(name: string, pass: Pass): Promise<PassResult> {
  const { lease, ports } = pass;
  const begun = ports.clock.now();
  const found = await readCluster(name, { now: begun, routine: lease.routine }, ports);
  if (isElsewhere(found.cluster, ports.zone)) {
    ports.log.info("left the cluster to the workers of another zone", { cluster: name });
    return { released: await commitAndRelease([], lease, ports.table), unfinished: false };
  }
  const reading = { ...found, cluster: await renewClusterBlobs({ ...found, readAt: begun }, ports) };
  const taken = await workThrough(reading, pass, begun);
  lease.routine = routineNow(reading, { ...taken, name, begun });
  const released = await commitAndRelease(taken.pending, lease, ports.table);
  return { released, unfinished: taken.isMore || taken.stopped === "late" || lease.keptWaiting };
}

async function workThrough(reading: ClusterReading, pass: Pass, begun: Date): Promise<TurnsTaken> {
  const { cluster, syncs, freezeState, routine } = reading;
  if (cluster === undefined) return noTurns;
  const { ports } = pass;
  const plan = planTurns(reading, { ...pass, cluster, now: ports.clock.now(), log: ports.log });
  return takeSyncTurns(plan, { ...pass, cluster, syncs, begun, freezeState, routine });
}

/** When not every Sync had its turn, the row stays due. */
function routineNow(
  { syncs, routine }: ClusterReading,
  taken: Pick<TurnsTaken, "rows" | "stopped" | "isMore"> & { readonly name: string; readonly begun: Date },
): Routine {
  const isOver = taken.stopped === undefined && !taken.isMore;
  const checked = isOver ? routineAfter(taken.name, routine, taken.begun) : routine;
  const rows = new Map([...syncs, ...taken.rows].map((row) => [row.sk, row]));
  return routineOf([...rows.values()], checked);
}

/**
 * The two queues in front of the workers. In the `common` lane all clusters share the places, and a slow cluster has to
 * leave. In the `slow` lane a cluster has the time that it needs.
 */
export type Lane = "common" | "slow";

/** A healthy server answers in a tenth of this time, and its lists in half. */
const answerWithinMs = 2_000;

/** Clients of the common lane: a cluster that answers slowly is left to a worker of the slow lane. */
function hurried(connector: ClusterConnector): ClusterConnector {
  return {
    connect: (cluster, deadline) => connector.connect(cluster, deadline, { answerWithinMs }),
    distrust: (cluster) => connector.distrust(cluster),
  };
}

/** The lane for the cluster's next work. */
function laneOf(use: PlaceUse | undefined, now: Date): Lane {
  return isSlow(use, now) ? "slow" : "common";
}

/**
 * A worker sends messages about its own cluster directly to the cluster's lane; all other functions send to the common
 * one.
 */
function inLane(messages: readonly Message[], { cluster, lane }: { readonly cluster: string; readonly lane: Lane }) {
  if (lane === "common") return messages;
  return messages.map((message): Message => {
    if (message.to !== "apply" || message.cluster !== cluster) return message;
    return { ...message, to: "applySlow" };
  });
}
