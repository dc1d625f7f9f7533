/** Fleets to be looked at, of any size: rows as planner and workers leave them, with everything that a page has a word for. */
import type { LookPorts } from "#functions/api/look-routes.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { apiFixture, cluster } from "#test/unit/functions/api/api-fixture.ts";

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

/** What goes on forever is left where it stands. */
async function unlessStill(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("the rollout stands still"))) throw error;
  }
}

export async function shownFleet(size: number, now: Date): Promise<LookPorts> {
  const api = apiFixture(new MemoryTable({ pageItems: 1000 }));
  api.setNow(new Date(now.getTime() - 60 * hourMs).toISOString());
  const names = Array.from(
    { length: size },
    (_, at) => `prod-${regions[at % regions.length]}-${String(at).padStart(4, "0")}`,
  );
  const documents = names.map((name, at) => cluster(name, { ring: ringOf(at, size), env: "prod" }));
  for (const part of inParts(documents, 200)) {
    const { status, body } = await api.call("POST", "/v1/apply", { documents: part, confirm: true });
    if (status !== 200) throw new Error(`the clusters were refused: ${JSON.stringify(body)}`);
  }
  const { table, blobs } = api;
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
  return { table, blobs, clock: { now: () => now }, installation: "starling" };
}
