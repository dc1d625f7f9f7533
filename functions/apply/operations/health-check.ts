import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import { seenHealth } from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { desiredPart } from "#functions/apply/steps/rendering-places.ts";
import { type Recalled, recallInventory, reportedWith } from "#functions/apply/steps/set-records.ts";
import { saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { isLeftAway } from "#functions/apply/steps/undone-corrections.ts";
import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { isDrifted } from "#shared/fleet/sync/conditions.ts";
import { healthFinding } from "#shared/fleet/sync/observe.ts";
import { checkHealth, type HealthReport, type UnreadyObject } from "#shared/kube/engine/check-health.ts";
import { jobFailed } from "#shared/kube/health/status.ts";
import { changeInventory, entriesById, type Inventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import { describeObject, objectIdKey } from "#shared/kube/object-id.ts";

/**
 * Checks the health of everything that was applied, without writing to the cluster. A deleted or replaced object would
 * never become ready by being checked: the next inspection restores it. A missing object may mean that this is another
 * cluster.
 */
export async function healthCheck(context: OperationContext): Promise<OperationResult> {
  const recalled = await recallInventory(context);
  return "reported" in recalled ? checkRecalled(recalled) : recalled;
}

/**
 * Checks the health when the inventory has been recalled already.
 * @param inventory - its changes since; they are saved then.
 */
export async function checkRecalled(recalled: Recalled, inventory = recalled.inventory): Promise<OperationResult> {
  const { finding, complete } = await checkInventory({ ...recalled, inventory });
  const isSame = inventory === recalled.inventory && complete.length === 0;
  if (recalled.reported.rebuilt === undefined && isSame) return finding;
  const after = changeInventory(inventory, { recorded: complete, settled: [], progress: inventory.progress });
  const saved = await saveInventory(recalled.context, after);
  return reportedWith(recalled, { ...finding, ...defined({ inventory: saved }) });
}

interface HealthChecked {
  readonly finding: OperationResult;
  /** What the inventory records; see `HealthReport`. */
  readonly complete: readonly InventoryEntry[];
}

async function checkInventory({ context, inventory: stored }: Recalled): Promise<HealthChecked> {
  const { row, client, ports } = context;
  const inventory = await desiredPart(row, stored, ports.blobs);
  const report = await checkHealth(client, { inventory, clock: ports.clock, failedJobs: failedJobsOf(row) });
  return { finding: await findingOf(context, { inventory, report }), complete: report.complete };
}

async function findingOf(
  context: OperationContext,
  { inventory, report }: { readonly inventory: Inventory; readonly report: HealthReport },
): Promise<OperationResult> {
  const { row, ports } = context;
  const finding = { ...healthFinding(row, seenHealth(report), ports.clock.now()), ...leftDrifted(context) };
  const away = report.notReady.filter(({ status }) => status === "NotFound");
  if (away.length === 0) return finding;
  const identity = await identityFinding(context);
  if (!("uid" in identity)) return identity;
  const known = entriesById(inventory);
  const missing = away.find((object) => !isLeft(object, known));
  if (row.desired.apply.drift !== "correct" || missing === undefined) return finding;
  const how = missing.reason === "Replaced" ? "was replaced by another object of its name" : "was deleted";
  const lost = `${describeObject(missing.id)} ${how}`;
  if (context.withheld !== undefined) {
    return {
      ...finding,
      reason: "ObjectsMissing",
      message: `${lost}; nothing is applied: ${context.withheld.message}`,
    };
  }
  return { ...finding, phase: "Retrying", reason: "ObjectsMissing", message: `${lost}; it is put back` };
}

/** An object that may not be restored keeps the finding of the last comparison. */
function leftDrifted({ row, withheld }: OperationContext): Pick<OperationResult, "drift" | "withheld"> {
  const { drift } = row.observed ?? {};
  return withheld === undefined || drift === undefined || !isDrifted(row.observed) ? {} : { drift, withheld };
}

/** The object was restored often enough, and is reported. */
function isLeft({ id, reason }: UnreadyObject, known: ReturnType<typeof entriesById>): boolean {
  const entry = known.get(objectIdKey(id));
  return entry !== undefined && isLeftAway(entry, reason === "Replaced" ? "replaced" : "missing");
}

/** The objects that the row names. */
export function failedJobsOf({ desired, observed }: SyncRow): ReadonlySet<string> {
  if (observed?.attempt !== desired.attempt) return new Set();
  return new Set(observed.problems.filter(({ reason }) => reason === jobFailed).map(({ object }) => object));
}
