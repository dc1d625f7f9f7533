import { allPages } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorCode, errorMessage, isConflict, StarlingError } from "#shared/base/errors.ts";
import { dueAttributes, dueShard, dueShardCount, lateSeconds, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, keyText, type NewerRow, newerRowText, type RowKey, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import { distinctMessages, type Message, pollMessages } from "#shared/messages.ts";
import type { IndexEntry, Log, MessageSender, Metrics, Table } from "#shared/ports.ts";

export interface TickPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Rows claimed at once; the claims of a shard are independent of each other. */
const concurrentClaims = 25;

/**
 * Claims the rows that are due and sends the message that each one waits for. A claim replaces the `dueKey` that was read
 * by a watchdog, and only then the message is sent. So only one of two ticks claims a row, and a tick that dies in between
 * delays the row by one watchdog. The delay of the latest row is reported each time, also when nothing was due: a missing
 * report means that no tick succeeds.
 * A stage run is due for its alarms, and waits for no message.
 * @returns the number of messages sent, and the claimed stage runs.
 */
export async function claimDue(
  ports: TickPorts,
): Promise<{ readonly sent: number; readonly stageRuns: readonly RowKeyOf<"StageRun">[] }> {
  const sources: PolledSource[] = [];
  const shards = await Promise.allSettled(
    Array.from({ length: dueShardCount }, (_, shard) => claimShard(dueShard(shard), sources, ports)),
  );
  // Those of one upstream are in all shards.
  const polls = pollMessages(sources);
  if (polls.length > 0) await ports.sender.send(polls);
  // The report comes after all shards have ended: work that runs on after the answer freezes with its sandbox.
  const failure = shards.find((shard) => shard.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  const claimed = shards.flatMap((shard) => (shard.status === "fulfilled" ? [shard.value] : []));
  ports.metrics.seconds("DueLag", Math.max(...claimed.map(({ latest }) => latest)));
  const sent = claimed.reduce((sum, shard) => sum + shard.sent, polls.length);
  if (sent > 0) ports.log.info("sent messages for due rows", { sent });
  return { sent, stageRuns: claimed.flatMap(({ stageRuns }) => stageRuns) };
}

type PolledSource = Pick<SourceRow, "namespace" | "name" | "spec">;

interface Shard {
  /** Messages, without those of Sources. */
  readonly sent: number;
  /** The delay of the latest row in seconds. */
  readonly latest: number;
  readonly stageRuns: readonly RowKeyOf<"StageRun">[];
}

interface Claimed {
  readonly key: RowKey;
  readonly late: number;
  /** The row as it was before the claim, if it is a Source. */
  readonly source: SourceRow | undefined;
}

/** @param sources - takes the Sources that were claimed; their messages are left to the caller, also after an error. */
async function claimShard(shard: string, sources: PolledSource[], ports: TickPorts): Promise<Shard> {
  const upTo = `${ports.clock.now().toISOString()}#\uffff`;
  const reported = new Set<string>();
  const stageRuns: RowKeyOf<"StageRun">[] = [];
  let latest = 0;
  const entries = { index: "due", pk: shard, upTo, limit: concurrentClaims } as const;
  for await (const page of allPages((start) => ports.table.queryIndex({ ...entries, ...start }))) {
    const claimed = await claimPage(page, ports);
    for (const { late } of claimed) latest = Math.max(latest, late);
    stageRuns.push(...claimed.flatMap(({ key }) => (isStageRun(key) ? [key] : [])));
    for (const { source } of claimed) {
      if (source !== undefined) sources.push({ namespace: source.namespace, name: source.name, spec: source.spec });
    }
    const messages = claimed
      .flatMap(({ key }) => messageFor(key))
      .filter((message) => !reported.has(JSON.stringify(message)));
    for (const message of messages) reported.add(JSON.stringify(message));
    if (messages.length > 0) await ports.sender.send(distinctMessages(messages));
  }
  return { sent: reported.size, latest, stageRuns };
}

async function claimPage(entries: readonly IndexEntry[], ports: TickPorts): Promise<readonly Claimed[]> {
  if (entries.length === 0) return [];
  const rows = await ports.table.getMany(
    entries.map((entry) => entry.key),
    { newer: "kept" },
  );
  const newer = rows.filter(isNewer);
  reportNewer(newer, ports);
  const left = new Set(newer.map(keyText));
  const known = new Map(rows.map((row) => [keyText(row), row]));
  const claims = entries
    .filter(({ key }) => !left.has(keyText(key)))
    .map(async (entry): Promise<readonly Claimed[]> => {
      const row = known.get(keyText(entry.key));
      // Its alarms are read each minute, whatever they tell.
      const sent = isStageRun(entry.key) ? 0 : row?.dispatches;
      const late = await claim(entry, { dispatches: Number(sent ?? 0) || 0, ports });
      if (late === undefined) return [];
      return [{ key: entry.key, late, source: row?.type === "Source" ? row : undefined }];
    });
  return (await Promise.all(claims)).flat();
}

/** Rows of a newer version cannot be claimed before the stack is updated: each minute they cost an index entry and a read. */
function reportNewer(newer: readonly NewerRow[], { log, metrics }: TickPorts): void {
  const [first, ...others] = newer;
  if (first === undefined) return;
  log.error(newerRowText(first, others.length), { code: "NewerRow", rows: newer.length });
  metrics.count("NewerRows", newer.length);
}

/**
 * The watchdog grows with the dispatches that had no effect. A row that cannot be updated stays due, and keeps no other row
 * waiting: the roles of zones may write rows of their clusters that nothing else would write.
 * @returns how late the row is, in seconds; undefined when another tick was faster, or when the row cannot be updated.
 */
async function claim(
  entry: IndexEntry,
  context: { readonly dispatches: number; readonly ports: TickPorts },
): Promise<number | undefined> {
  const { ports, dispatches } = context;
  const now = ports.clock.now();
  try {
    await ports.table.update({
      update: entry.key,
      set: { ...dueAttributes(entry.key, watchdogAt(now, dispatches)) },
      add: { dispatches: 1 },
      when: [{ attribute: "dueKey", equals: entry.sort }],
    });
    return lateSeconds(now, entry.sort) || 0;
  } catch (error) {
    if (isConflict(error)) return undefined;
    if (!isOfRow(error)) throw error;
    const row = keyText(entry.key);
    ports.metrics.count("NewerRows", 1);
    ports.log.error("left a due row that cannot be updated", {
      row,
      code: errorCode(error),
      error: errorMessage(error),
    });
    return undefined;
  }
}

/** Whether DynamoDB refuses to update this row, because of its size or the type of an attribute, or whether nobody can read it. */
function isOfRow(error: unknown): boolean {
  if (error instanceof StarlingError) return error.code === "RowTooLarge" || error.code === "UnexpectedRow";
  return error instanceof Error && error.name === "ValidationException";
}

function isStageRun(key: RowKey): key is RowKeyOf<"StageRun"> {
  return keys.stageRun.parse(key) !== undefined;
}

/** The message that a due row waits for, by the row's key; none for a Source, which shares one with others. */
function messageFor(key: RowKey): Message[] {
  const pin = keys.pin.parse(key);
  if (pin !== undefined)
    return [{ to: "resolve", source: { namespace: pin.namespace, name: pin.name }, pin: pin.revision }];
  const discovery = keys.discovery.parse(key);
  if (discovery !== undefined) return [{ to: "discover", discovery: discovery.name }];
  const owner = syncOwner(key);
  if (owner !== undefined) return [{ to: "rollout", owner }];
  const onCluster = keys.sync.parse(key) ?? keys.lease.parse(key) ?? keys.cluster.parse(key);
  if (onCluster !== undefined) return [{ to: "apply", cluster: onCluster.cluster }];
  const rendering = keys.rendering.parse(key);
  return rendering === undefined ? [] : [{ to: "render", input: rendering.input }];
}

/** The owner of a row that people write, or that is planned. */
function syncOwner(key: RowKey): Owner | undefined {
  const object = keys.object.parse(key);
  if (object === undefined) return keys.rolloutState.parse(key);
  return object.kind === "Source" || object.kind === "Receiver" ? undefined : { ...object, kind: object.kind };
}
