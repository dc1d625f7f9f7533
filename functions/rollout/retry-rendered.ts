import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import { type Renderings, readRenderings, requestOf } from "#functions/rollout/decide.ts";
import { contentFor } from "#functions/rollout/fill-arrivals.ts";
import type { Waiting } from "#functions/rollout/fill-leg.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters, valuedEntries } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { failedInPage, tryAgain } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure, type RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { lastLegOf } from "#shared/fleet/rollout/feed.ts";
import { sealedTarget } from "#shared/fleet/rollout/plan.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ContentRow, SealedTarget, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";

interface Unrendered {
  /** Of the row that says so. */
  readonly key: RowKeyOf<"Target" | "Arrival">;
  readonly target: SealedTarget;
  readonly content: ContentRow | undefined;
}

/**
 * Who could not be rendered for and could be by now: nothing was assigned there, and they have another turn. Where nobody
 * tries any more, because the row has ended, somebody is asked to.
 */
export async function retryRendered(
  known: Known,
  asked: Waiting,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  for await (const page of unrendered(known, ports)) {
    const fresh = page.filter(({ key }) => !asked.has(keyText(key)));
    for (const { key } of fresh) asked.add(keyText(key));
    const renderings = await readRenderings(
      fresh.map(({ target }) => target),
      ports.table,
    );
    const requests = fresh.flatMap((one) => endedAmong(one, renderings));
    await askRenderings(transaction, { requests, renderings: renderings.rows }, ports);
    const rows = await ports.table.getMany(renderedAmong(fresh, renderings), { newer: "kept" });
    const failed = rows.filter((row) => !isNewer(row));
    await tryAgain(transaction, failed, ports.table);
    if (transaction.hasChanged() || transaction.messages.length > 0) return transaction;
  }
  return undefined;
}

/** Targets of the legs that stages had last, and then clusters that came to a stage. */
async function* unrendered(known: Known, { lists, table }: PlannerPorts): AsyncGenerator<readonly Unrendered[]> {
  const { subject, unit, legs, contents } = known;
  for (const stage of unit.stages) {
    const leg = lastLegOf(stage, legs);
    if (leg === undefined) continue;
    const sealed = [...(await readSealed(leg, leg.unrendered, lists)).values()];
    const content = contents.get(leg.content);
    const targets = sealed.map((target) => ({ key: keys.target(subject, leg, target.cluster), target, content }));
    yield* inParts(targets, failedInPage);
  }
  if (unit.arrivals.failed === 0) return;
  const range = { ...ranges.arrivals(subject, "failed"), limit: failedInPage, newer: "kept" } as const;
  for await (const page of allPages((start) => table.query({ ...range, ...start }))) {
    const failed = page.filter((row) => !isNewer(row)).filter(({ reason }) => isRenderFailure(reason));
    const found = await readClusters(known, { clusters: failed.map(({ cluster }) => cluster), with: ["syncs"] }, table);
    const valued = await valuedEntries(found.values(), table);
    yield failed.flatMap((key): readonly Unrendered[] => {
      const { cluster, syncs = [] } = found.get(key.cluster) ?? {};
      const fleet = valued.get(key.cluster);
      const stage = unit.stages.find(({ name }) => name === key.stage);
      const content = stage && contents.get(key.content ?? contentFor(syncs, stage, known));
      if (cluster === undefined || fleet === undefined || content === undefined) return [];
      return [{ key, target: sealedTarget({ ...fleet, cluster }, content.plan), content }];
    });
  }
}

/** Those for which everything is rendered by now. A path that says nothing for a cluster says nothing later either. */
function renderedAmong(found: readonly Unrendered[], { rows }: Renderings): readonly Unrendered["key"][] {
  const isRendered = (input: TargetInput) =>
    "disabled" in input || ("digest" in input && rows.get(input.digest)?.state === "Done");
  return found.filter(({ target }) => target.inputs.every(isRendered)).map(({ key }) => key);
}

/** What the target waits for and no row asks for. */
function endedAmong({ target, content }: Unrendered, { rows, newer }: Renderings): readonly RenderingRequest[] {
  if (content === undefined) return [];
  return target.inputs.flatMap((input, index) =>
    !("digest" in input) || rows.has(input.digest) || newer.has(input.digest)
      ? []
      : requestOf({ content, target }, index),
  );
}
