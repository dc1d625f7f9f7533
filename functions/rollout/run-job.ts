import { readList, storeList } from "#functions/rollout/fleet.ts";
import { forgetSyncs, toForget } from "#functions/rollout/forget.ts";
import { recallMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { park } from "#functions/rollout/settle-slots.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import type { SealedTarget } from "#shared/adapters/sealed-targets.ts";
import { firstItems } from "#shared/base/all-pages.ts";
import { isBlobLost, isConflict } from "#shared/base/errors.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { inputDigest, inputsOf, relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import { arrivalStates, keys, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { ContentRow, Job, LegRow, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, rowSchema } from "#shared/fleet/rows/row.ts";

/** Clusters in one step of a job. */
const pageSize = 20;

/** One page of the first job. @returns undefined when there is none. */
export async function runJob(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const [job, ...others] = known.unit.jobs;
  if (job === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const next = await runPage(transaction, job, ports);
  transaction.edit({ jobs: next === undefined ? others : [next, ...others] });
  return transaction;
}

/** @returns what is left of the job. */
async function runPage(transaction: Transaction, job: Job, ports: PlannerPorts): Promise<Job | undefined> {
  if (job.do === "retry") return retryPage(transaction, job, ports);
  if (job.do === "look") return lookPage(transaction, job, ports);
  if (job.do === "clear") return clearPage(transaction, job, ports);
  const clusters = await listOf(job, transaction, ports);
  const page = clusters.slice(job.at, job.at + pageSize);
  const done =
    job.do === "leave" ? await leavePage(transaction, page, ports) : await arrivePage(transaction, page, ports);
  const at = job.at + done;
  return at < clusters.length ? { ...job, at } : undefined;
}

/** A list that is lost names nobody: who came is found by the next list of members, and who left is asked for by its Syncs. */
async function listOf(
  job: Extract<Job, { do: "arrive" | "leave" }>,
  { known }: Transaction,
  ports: PlannerPorts,
): Promise<readonly string[]> {
  try {
    return await readList<string>(ports.blobs, job.clusters);
  } catch (error) {
    if (!isBlobLost(error)) throw error;
    ports.log.warn("a list of clusters is lost", { ...known.subject, key: job.clusters });
    return [];
  }
}

/** Those that are no longer selected: their Syncs are forgotten, their objects stay. @returns how many that were. */
async function leavePage(transaction: Transaction, page: readonly string[], ports: PlannerPorts): Promise<number> {
  const { known } = transaction;
  const { subject, unit } = known;
  const rows = await ports.table.getMany(
    page.flatMap((cluster) => [
      keys.fleet(cluster),
      keys.slot(subject, cluster),
      keys.lease(cluster),
      ...arrivalStates.map((state) => keys.arrival(subject, state, cluster)),
      ...unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
      ...unit.stages.flatMap(({ moving }) => (moving === undefined ? [] : [keys.target(subject, moving, cluster)])),
    ]),
    { newer: "kept" },
  );
  const relation = relationOf(known.row);
  const isDeleting = known.row.operations.deletion !== undefined;
  for (const [index, cluster] of page.entries()) {
    const fleet = rows.find((row) => row.type === "Fleet" && row.name === cluster) as FleetRow | undefined;
    const syncs = rows.filter((row) => row.type === "SyncOnCluster").filter((row) => row.cluster === cluster);
    if (rows.some((row) => isNewer(row) && keys.sync.parse(row)?.cluster === cluster)) transaction.cannotRead(cluster);
    // A deletion is about everybody who has something, selected or not.
    if (isDeleting && fleet !== undefined) continue;
    const isBack = fleet !== undefined && selects(relation.clusters, fleet);
    // Selected again meanwhile, or another one under its name: what is there is not what was assigned.
    const as = fleet === undefined || isBack ? "gone" : "deselected";
    const forgotten = toForget(syncs, as);
    const room = transaction.room() - 6 - unit.stages.length;
    forgetSyncs(transaction, { syncs: forgotten.slice(0, Math.max(0, room)), as }, ports);
    if (room < forgotten.length) return index;
    for (const row of rows) {
      if (row.type === "Arrival" && row.cluster === cluster) transaction.dropArrival(row, keys.arrival.read(row).state);
    }
    const outcome = { state: "Skipped" as const, reason: "no longer selected; its objects stay" };
    // What kept its stage from passing does so no longer.
    for (const target of rows.filter((row) => row.type === "Target").filter((row) => row.cluster === cluster))
      if (target.state === "Failed" || target.state === "Unreachable") transaction.amend(target, outcome);
    const slot = rows.find((row) => row.type === "Slot" && row.cluster === cluster);
    if (slot?.type !== "Slot" || slot.parking !== undefined) continue;
    const leg = slot.leg === undefined ? undefined : transaction.leg(slot.leg);
    if (leg !== undefined && leg.endedAt === undefined) {
      transaction.record(leg, { cluster, order: slot.order ?? 0 }, "Assigned", { ...outcome, attempts: slot.attempts });
    }
    const lease = rows.filter((row) => row.type === "Lease").find((row) => keys.lease.read(row).cluster === cluster);
    park(transaction, { slot, lease });
  }
  return page.length;
}

/**
 * Clusters that came to a stage get what it is on. Where nothing has passed yet they go with the leg that is under way, and
 * else wait for the next.
 */
async function arrivePage(transaction: Transaction, page: readonly string[], ports: PlannerPorts): Promise<number> {
  const { known } = transaction;
  const { subject, row } = known;
  const relation = relationOf(row);
  const rows = await ports.table.getMany(
    page.flatMap((cluster) => [
      keys.fleet(cluster),
      ...arrivalStates.map((state) => keys.arrival(subject, state, cluster)),
    ]),
    { newer: "kept" },
  );
  transaction.see(rows);
  const appended = new Map<string, SealedTarget[]>();
  for (const fleet of rows.filter((one) => one.type === "Fleet")) {
    if (!selects(relation.clusters, fleet)) continue;
    const stage = known.unit.stages.find(({ name }) => name === stageOf(relation.rollout, fleet));
    const leg = stage === undefined ? undefined : legOf(stage, known.legs);
    if (stage?.on === undefined && leg !== undefined && leg.membersVersion < known.unit.membersVersion) {
      const content = transaction.content(leg.content);
      appended.set(leg.stage, [...(appended.get(leg.stage) ?? []), sealedNow(fleet, content)]);
    }
    for (const old of rows) {
      if (old.type === "Arrival" && old.cluster === fleet.name && keys.arrival.read(old).state === "failed")
        transaction.dropArrival(old, "failed");
    }
    if (stage?.on !== undefined) transaction.putArrival(fleet.name, "waiting", { why: "joined", reason: "" });
  }
  for (const [name, targets] of appended) {
    const stage = known.unit.stages.find((one) => one.name === name);
    const leg = stage === undefined ? undefined : legOf(stage, known.legs);
    if (leg !== undefined) await append(transaction, { leg, targets }, ports);
  }
  return page.length;
}

function sealedNow({ name: cluster, uid, labels, values }: FleetRow, { plan }: ContentRow): SealedTarget {
  const inputs = inputsOf(plan, { cluster, labels, values }).map(
    (input): TargetInput => ("problem" in input ? input : { digest: inputDigest(input), path: input.path }),
  );
  return { cluster, uid, inputs };
}

/** The one exception of the seal: until a stage has passed anything, who comes to it goes with its leg. */
async function append(
  transaction: Transaction,
  { leg, targets }: { readonly leg: LegRow; readonly targets: readonly SealedTarget[] },
  ports: PlannerPorts,
): Promise<void> {
  const known = new Set<string>();
  for (const page of leg.pages)
    for (const { cluster } of await readList<SealedTarget>(ports.blobs, page.key)) known.add(cluster);
  const fresh = targets.filter(({ cluster }) => !known.has(cluster));
  if (fresh.length === 0) return;
  const key = await storeList(ports.blobs, fresh);
  transaction.putLeg({
    ...leg,
    size: leg.size + fresh.length,
    pages: [...leg.pages, { key, first: leg.size }],
    counts: { ...leg.counts, Waiting: leg.counts.Waiting + fresh.length },
  });
}

/** Targets of a leg that failed get another turn, and count anew. */
async function retryPage(
  transaction: Transaction,
  job: Extract<Job, { do: "retry" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { known } = transaction;
  if (job.leg === undefined) return retryArrivals(transaction, ports);
  const leg = transaction.leg(job.leg);
  if (leg === undefined || leg.phase === "Superseded") return undefined;
  const range = { ...ranges.targets(known.subject, leg), limit: 2 * pageSize };
  const { items, next } = await ports.table.query({
    ...range,
    ...(job.after === undefined ? {} : { after: job.after }),
  });
  const failed = items.filter(({ state }) => state === "Failed");
  if (leg.phase === "Passed") {
    await bringUp(
      transaction,
      failed.map(({ cluster }) => cluster),
      ports,
    );
    const orders = new Set(failed.map(({ order }) => order));
    const unrendered = leg.unrendered.filter((order) => !orders.has(order));
    if (unrendered.length < leg.unrendered.length) transaction.putLeg({ ...leg, unrendered });
  } else for (const target of failed) transaction.retry(target);
  const retried = transaction.leg(leg) ?? leg;
  if (retried !== leg) transaction.putLeg({ ...retried, retriedAt: transaction.at });
  return next === undefined ? undefined : { ...job, after: next };
}

/** A stage that has passed left them behind: they are arrivals. */
export async function bringUp(transaction: Transaction, clusters: readonly string[], { table }: PlannerPorts) {
  const { subject } = transaction.known;
  const wanted = clusters.flatMap((cluster) => arrivalStates.map((state) => keys.arrival(subject, state, cluster)));
  const found = await table.getMany(wanted);
  transaction.see(found);
  const busy = new Set(found.map(({ cluster }) => cluster));
  for (const cluster of clusters)
    if (!busy.has(cluster)) transaction.putArrival(cluster, "waiting", { why: "returned", reason: "" });
}

async function retryArrivals(transaction: Transaction, ports: PlannerPorts): Promise<Job | undefined> {
  const { known } = transaction;
  const range = { ...ranges.arrivals(known.subject, "failed"), limit: pageSize };
  const failed = await firstItems((start) => ports.table.query({ ...range, ...start }), pageSize);
  const waiting = failed.map(({ cluster }) => keys.arrival(known.subject, "waiting", cluster));
  if (failed.length > 0) transaction.see(await ports.table.getMany(waiting));
  for (const arrival of failed) {
    transaction.dropArrival(arrival, "failed");
    transaction.putArrival(arrival.cluster, "waiting", { why: arrival.why, reason: "" });
  }
  for (const { name } of known.unit.stages) transaction.editStage(name, (stage) => ({ ...stage, failedArrivals: 0 }));
  return failed.length === 0 ? undefined : { do: "retry" };
}

/** Those that failed as arrivals to a stage are targets of what it has passed since, or arrive at that. */
async function clearPage(
  transaction: Transaction,
  job: Extract<Job, { do: "clear" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const range = { ...ranges.arrivals(transaction.known.subject, "failed"), limit: 2 * pageSize };
  const { items, next } = await ports.table.query({
    ...range,
    ...(job.after === undefined ? {} : { after: job.after }),
  });
  for (const arrival of items) if (arrival.stage === job.stage) transaction.dropArrival(arrival, "failed");
  return next === undefined ? undefined : { ...job, after: next };
}

/** Every Sync of the members is looked at now, whatever its interval. */
async function lookPage(
  transaction: Transaction,
  job: Extract<Job, { do: "look" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { known, now } = transaction;
  const { subject, unit } = known;
  const members = await recallMembers(known, ports);
  const page = members.slice(job.at, job.at + pageSize);
  const wanted = page.flatMap(({ cluster }) =>
    unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
  );
  await Promise.all(wanted.map((key) => askSync(key, { asked: job.number, now, ports })));
  transaction.messages.push(...page.map(({ cluster }) => ({ to: "apply" as const, cluster })));
  const at = job.at + page.length;
  return at < members.length ? { ...job, at } : undefined;
}

async function askSync(
  key: ReturnType<typeof keys.sync>,
  { asked, now, ports }: { readonly asked: number; readonly now: Date; readonly ports: PlannerPorts },
): Promise<void> {
  try {
    await ports.table.update({
      update: key,
      set: { reconcile: asked, ...dueAttributes(key, watchdogAt(now, 0)) },
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
