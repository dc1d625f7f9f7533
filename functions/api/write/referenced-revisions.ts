/** Pushed versions that are remembered for as long as a template or a rollout names them. */
import { keptNumbers } from "#functions/api/write/decide-rejection.ts";
import { ownersUsing } from "#shared/adapters/source-users.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { artifactRevisionOf } from "#shared/fleet/rollout/earlier-artifacts.ts";
import { pinnedSources } from "#shared/fleet/rollout/pinned-sources.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { isRevision } from "#shared/fleet/sources/revision-at.ts";
import type { Table } from "#shared/ports.ts";

/** @returns whether a template stays at a revision of the Source, or a kept rollout has it. */
export async function referencedRevisions(source: SourceRow, table: Table): Promise<(revision: string) => boolean> {
  const [texts, rolledOut] = await Promise.all([pinTexts(source, table), rolledOutRevisions(source, table)]);
  // A rollout that a newer version wrote may have any revision.
  if (rolledOut === undefined) return () => true;
  return (revision) => rolledOut.has(revision) || texts.some((text) => isRevision(source.spec, revision, text));
}

async function pinTexts(source: SourceRow, table: Table): Promise<readonly string[]> {
  const pins = allItems((start) => table.query({ ...ranges.pins(source), newer: "kept", ...start }));
  return Array.fromAsync(pins, (pin) => keys.pin.read(pin).revision);
}

/** Undefined when a rollout cannot be read. */
async function rolledOutRevisions(source: SourceRow, table: Table): Promise<ReadonlySet<string> | undefined> {
  const owners = await ownersUsing(source, table);
  const states = await table.getMany(owners.map(keys.rolloutState), { newer: "kept" });
  const readable = states.filter((state) => !isNewer(state));
  const named = readable.flatMap((state) => keptNumbers(state).map((number) => keys.rollout(state.owner, number)));
  const rollouts = await table.getMany(named, { newer: "kept" });
  const known = rollouts.filter((rollout) => !isNewer(rollout));
  if (readable.length < states.length || known.length < rollouts.length) return undefined;
  const pins = known.flatMap(({ plan }) => pinnedSources(plan));
  const own = pins.filter((pin) => pin.source === source.name);
  return new Set(own.flatMap((pin) => [pin.revision, artifactRevisionOf(pin)]));
}
