/** Fleets to be looked at, of any size: rows as planner and workers leave them, with everything that a page has a word for. */
import type { ReadPorts } from "#functions/api/http/read-routes.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { syncEvents } from "#shared/fleet/rows/event-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { apiFixture, cluster, receiver } from "#test/unit/functions/api/api-fixture.ts";

const hourMs = 3_600_000;
const regions = ["euw1", "use1", "apne1", "sae1"];

/** Rings as a fleet has them: a few, some, and the rest. */
function ringOf(at: number, size: number): "canary" | "early" | "broad" {
  const share = at / size;
  return at < 2 || share < 0.02 ? "canary" : share < 0.2 ? "early" : "broad";
}

const stages = [
  { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } },
  { name: "early", clusters: { selector: { matchLabels: { ring: "early" } } } },
  { name: "broad" },
];

/** Waits for work that may never end, and leaves it when it makes no progress. */
async function unlessStill(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("the rollout stands still"))) throw error;
  }
}

/** The problems of the first clusters, each a different one with events about it. */
const problems: readonly ((now: Date) => Partial<Observed>)[] = [
  (now) => ({
    drift: {
      ...{ at: now.toISOString(), objects: 2, corrected: false },
      named: [
        { object: "Deployment shop/web", reason: "Changed", message: "spec.replicas, by kubectl-edit" },
        { object: "ConfigMap shop/settings", reason: "Missing", message: "it was deleted" },
      ],
    },
    leftAlone: [{ object: "Service shop/web", reason: "Drifted", message: "spec.ports is undone by operator" }],
    conditions: [
      { type: "Drifted", status: "True", reason: "DriftDetected", message: "2 objects", since: now.toISOString() },
    ],
  }),
  (now) => ({
    phase: "Retrying",
    reason: "ApplyFailed",
    message: "1 of 3 objects could not be applied",
    nextAt: new Date(now.getTime() + hourMs / 30).toISOString(),
    problems: [{ object: "Certificate shop/web", reason: "NoMatch", message: "the cluster serves no Certificate" }],
    conditions: [
      { type: "Ready", status: "False", reason: "ApplyFailed", message: "1 of 3", since: now.toISOString() },
    ],
  }),
  (now) => ({
    phase: "Failed",
    reason: "HookFailed",
    message: "Job shop/migrate ended badly",
    problems: [{ object: "Job shop/migrate", reason: "HookFailed", message: "BackoffLimitExceeded: 4 Pods failed" }],
    conditions: [
      { type: "Ready", status: "False", reason: "HookFailed", message: "Job shop/migrate", since: now.toISOString() },
    ],
  }),
];

async function troubled(table: MemoryTable, names: readonly string[], now: Date): Promise<void> {
  for (const [at, problem] of problems.entries()) {
    const row = await table.get(keys.sync(names[at] ?? "", "platform", "monitoring.t0"));
    if (row?.observed === undefined) throw new Error(`cluster ${names[at]} has no Sync of the group that is quiet`);
    const since = now.toISOString();
    const put: SyncRow = { ...row, observed: { ...row.observed, since, at: since, ...problem(now) } };
    await table.write([{ put: { ...put, version: put.version + 1 } }]);
    await table.append(syncEvents(put));
  }
}

export async function shownFleet(size: number, now: Date): Promise<ReadPorts> {
  const table = new MemoryTable({ pageItems: 1000 });
  const api = apiFixture(table);
  api.setNow(new Date(now.getTime() - 60 * hourMs).toISOString());
  const names = Array.from(
    { length: size },
    (_, at) => `prod-${regions[at % regions.length]}-${String(at).padStart(4, "0")}`,
  );
  const documents = names.map((name, at) => cluster(name, { ring: ringOf(at, size), env: "prod" }));
  const senders = [receiver("ci", "acme/app", "platform"), receiver("ci", "acme/payments-(app|web)")];
  for (const part of [senders, ...inParts(documents, 200)]) {
    const { status, body } = await api.call("POST", "/v1/apply", { documents: part, confirm: true });
    if (status !== 200) throw new Error(`the documents were refused: ${JSON.stringify(body)}`);
  }
  const { blobs } = api;
  const group = (namespace: string, name: string, more: Partial<ConstructorParameters<typeof PlannedGroup>[0]> = {}) =>
    new PlannedGroup(
      {
        name,
        namespace,
        templates: 1,
        maxConcurrent: "20%",
        from: new Date(now.getTime() - 30 * hourMs),
        ...more,
        rollout: { stages, ...more.rollout },
      },
      { table, blobs },
    );
  const quiet = group("platform", "monitoring");
  await quiet.create([]);
  await quiet.rollOut("Keep metrics for thirty days", quiet.call);

  let isNew = false;
  const rolling = group("platform", "ingress", {
    failing: (name) => isNew && /[2-9]2$/.test(name),
    rollout: { maxFailures: "10%" },
  });
  await rolling.create([]);
  await unlessStill(rolling.rollOut("Ingress 4.2.0", rolling.call));
  for (let hour = 0; hour < 29; hour++) rolling.anHourLater();
  isNew = true;
  await unlessStill(
    rolling.rollOut("Ingress 4.2.1: take larger bodies", rolling.call, { until: Math.floor(size * 0.55) }),
  );

  let isBroken = false;
  const halted = group("payments", "app", { failing: () => isBroken });
  await halted.create([]);
  await halted.rollOut("Checkout 9.1", halted.call);
  for (let hour = 0; hour < 28; hour++) halted.anHourLater();
  isBroken = true;
  await unlessStill(halted.rollOut("Checkout 9.2: raise the timeout", halted.call));
  await troubled(table, names, now);
  return { table, blobs, clock: { now: () => now }, installation: "starling" };
}
