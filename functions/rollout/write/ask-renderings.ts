import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { isConflict } from "#shared/base/errors.ts";
import { renderingExpiry } from "#shared/fleet/blob-life.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { renderEngine } from "#shared/fleet/rollout/desired-plan.ts";
import { artifactRevisionOf } from "#shared/fleet/rollout/earlier-artifacts.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

export interface Asking {
  readonly requests: readonly RenderingRequest[];
  /** Known renderings, by input. */
  readonly renderings: ReadonlyMap<string, RenderingRow>;
}

/**
 * Requests renderings, and requests again those that failed and wait for a back-off, or are old. When another owner was
 * first, the renderer adds this one to the owners that it informs.
 */
export async function askRenderings(
  { known: { owner }, at, now, messages }: Transaction,
  { requests, renderings }: Asking,
  ports: PlannerPorts,
): Promise<void> {
  const distinct = new Map(requests.map((request) => [request.input, request]));
  const { namespace } = owner;
  for (const { source: name, revision, besides: pins, ...desired } of distinct.values()) {
    const source = { namespace, name, revision };
    const besides = pins.map((pin) => ({
      namespace,
      name: pin.source,
      revision: artifactRevisionOf(pin),
      besides: pin.artifactDigest,
    }));
    const others = besides.length === 0 ? {} : { besides };
    messages.push({ to: "render", input: desired.input, notify: owner, source, ...others });
    const before = renderings.get(desired.input);
    if (before !== undefined && before.state !== "Failed") continue;
    const row: RenderingRow = {
      ...keys.rendering(desired.input),
      type: "Rendering",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      ...desired,
      engine: renderEngine,
      state: "Pending",
      waiting: before?.waiting ?? [owner],
      sources: before?.sources ?? [source, ...besides],
      requestedAt: at,
      tries: 0,
      expiresAt: renderingExpiry(now),
    };
    const when = before === undefined ? ("absent" as const) : { version: before.version };
    try {
      await ports.table.write([{ put: due(row, watchdogAt(now, 0), 1), when }]);
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}
