import type { TickPorts } from "#functions/tick/claim-due.ts";
import { isConflict, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { afterReading, alarmSince, alarmsOf, isWatched, withAlarms } from "#shared/fleet/rollout/alarms.ts";
import { hashOf, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { AlarmsRow, ReadAlarm, StageRunRow, UnreadAlarm } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";
import type { AlarmReader } from "#shared/ports.ts";

/** Stage runs whose alarms are read at once: CloudWatch answers about ten requests of an account each second. */
const readAtOnce = 5;

/** Time in which readings begin, so that a slow CloudWatch never delays the next tick. */
const readSeconds = 20;

/** Length of the reason that an alarm cannot be read. */
const keptText = 300;

/**
 * Reads the alarms of the stage runs that bake, and informs the planner when they tell something new about the bake.
 * An alarm that cannot be read is recorded with the reason. @param due - the claimed stage runs.
 */
export async function watchAlarms(
  due: readonly RowKeyOf<"StageRun">[],
  ports: TickPorts & { readonly alarms: AlarmReader },
): Promise<void> {
  if (due.length === 0) return;
  const begun = ports.clock.now();
  const end = later(begun, readSeconds);
  const rows = await ports.table.getMany(due, { newer: "kept" });
  const watched = rows.filter((row) => !isNewer(row)).filter(isWatched);
  // Another order each time: when the time is not enough, each has its turn.
  const turn = (row: StageRunRow) => hashOf(`${keyText(row)}${begun.toISOString()}`);
  await runConcurrently(
    watched.toSorted((a, b) => turn(a) - turn(b)),
    readAtOnce,
    async (stageRun) => {
      if (ports.clock.now().toISOString() < end) await watch(stageRun, ports);
    },
  );
}

async function watch(stageRun: StageRunRow, ports: TickPorts & { readonly alarms: AlarmReader }): Promise<void> {
  const { table, sender } = ports;
  const { owner, bake } = stageRun;
  if (bake === undefined) return;
  const key = keys.alarms(owner, stageRun);
  const found = await table.get(key);
  const row = await readAll(stageRun, found?.from === bake.from ? found : undefined, ports);
  try {
    await table.update({
      update: key,
      set: { type: "Alarms", schema: rowSchema, ...row },
      add: { version: 1 },
      ...(row.unread === undefined ? { remove: ["unread"] } : {}),
      when: [
        found === undefined ? { attribute: "version", absent: true } : { attribute: "version", equals: found.version },
      ],
    });
  } catch (error) {
    // Another tick has read them.
    if (isConflict(error)) return;
    throw error;
  }
  const next = withAlarms(stageRun, { ...key, type: "Alarms", schema: rowSchema, version: 1, ...row });
  if (next !== stageRun) await sender.send([{ to: "rollout", owner, clusters: [] }]);
}

async function readAll(
  stageRun: StageRunRow,
  before: AlarmsRow | undefined,
  { alarms, clock, log }: TickPorts & { readonly alarms: AlarmReader },
): Promise<Pick<AlarmsRow, "from" | "alarms" | "unread">> {
  const from = stageRun.bake?.from ?? "";
  const read: Record<string, ReadAlarm> = { ...before?.alarms };
  let unread: UnreadAlarm | undefined;
  for (const { arn } of alarmsOf(stageRun)) {
    const known = read[arn];
    try {
      read[arn] = afterReading(from, known, await alarms.read(arn, alarmSince(from, known), clock.now()));
    } catch (error) {
      if (!(error instanceof StarlingError)) throw error;
      log.warn("an alarm cannot be read", { code: error.code, arn, owner: stageRun.owner.name });
      const since = before?.unread?.arn === arn ? before.unread.since : clock.now().toISOString();
      unread ??= { arn, since, message: excerpt(error.message, keptText) };
    }
  }
  return { from, alarms: read, ...(unread === undefined ? {} : { unread }) };
}
