import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { isConflict } from "#shared/base/errors.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { renderEngine } from "#shared/fleet/rollout/plan.ts";
import { due, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow, SourceRef } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";

export interface Asking {
  readonly subject: Subject;
  readonly requests: readonly RenderingRequest[];
  /** Those that are known, by their input. */
  readonly renderings: ReadonlyMap<string, RenderingRow>;
}

/**
 * Asks for renderings, and once more for those that failed and rest. Where another subject was first, the renderer adds
 * this one to those that it tells.
 */
export async function askRenderings(asking: Asking, ports: PlannerPorts): Promise<readonly Message[]> {
  const { subject, requests, renderings } = asking;
  const now = ports.clock.now();
  const messages: Message[] = [];
  for (const request of requests) {
    try {
      await ports.table.write([requestWrite(request, { subject, now, before: renderings.get(request.input) })]);
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    messages.push({ to: "render", input: request.input, notify: subject, source: sourceOf(request, subject) });
  }
  return messages;
}

function sourceOf({ source }: RenderingRequest, { namespace }: Subject): SourceRef {
  return { namespace, name: source };
}

interface Requesting {
  readonly subject: Subject;
  readonly now: Date;
  readonly before: RenderingRow | undefined;
}

function requestWrite(request: RenderingRequest, { subject, now, before }: Requesting): Write {
  const again = before?.state === "Failed" ? before : undefined;
  const { source: _source, ...wanted } = request;
  const row: RenderingRow = {
    ...keys.rendering(request.input),
    type: "Rendering",
    schema: rowSchema,
    version: (again?.version ?? 0) + 1,
    ...wanted,
    engine: renderEngine,
    state: "Pending",
    waiting: again?.waiting ?? [subject],
    sources: again?.sources ?? [sourceOf(request, subject)],
    requestedAt: now.toISOString(),
    tries: 0,
  };
  return { put: due(row, watchdogAt(now, 0), 1), when: again === undefined ? "absent" : { version: again.version } };
}
