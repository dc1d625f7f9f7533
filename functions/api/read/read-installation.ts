import type { ApiPorts, OwnParts } from "#functions/api/request/api-ports.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import type { DeadLetters, DueWork, Fact, Installation, Tick } from "#shared/fleet/api/installation.ts";
import { dueAtOf, dueShard, dueShardCount } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** Number of due rows that are counted in each shard; a larger number would add nothing. */
const countedPerShard = 25;

/** The state of the installation. Each part is asked alone, because the part that does not answer may be the problem. */
export async function readInstallation(ports: ApiPorts): Promise<Installation> {
  const { own, clock, account } = ports;
  const at = clock.now();
  const [webhookSecret, tick, due, deadLetters, concurrency] = await Promise.all([
    fact(async () => {
      const state = (await account.hasValue(own.webhookSecretArn)) ? ("set" as const) : ("empty" as const);
      return { arn: own.webhookSecretArn, state };
    }),
    fact(() => readTick(ports)),
    fact(() => readDue(ports, at)),
    fact(() => readDeadLetters(own, account)),
    fact(async () => ({ account: await account.concurrency(), ...own.concurrency })),
  ]);
  return {
    kind: "Installation",
    name: ports.installation,
    version: starlingVersion,
    at: at.toISOString(),
    ...defined({ resolveZone: ports.resolveZone }),
    webhookSecret,
    tick,
    due,
    deadLetters,
    concurrency,
  };
}

async function fact<T>(read: () => Promise<T>): Promise<Fact<T>> {
  try {
    return { known: true, value: await read() };
  } catch (error) {
    return { known: false, code: errorCode(error), message: errorMessage(error) };
  }
}

async function readTick({ table, own }: ApiPorts): Promise<Tick> {
  const row = await table.get(keys.tick);
  return { function: own.tickFunction, ...defined({ lastAt: row?.at }) };
}

async function readDue({ table }: ApiPorts, at: Date): Promise<DueWork> {
  const upTo = `${at.toISOString()}#\uffff`;
  const pages = await Promise.all(
    Array.from({ length: dueShardCount }, (_, shard) =>
      table.queryIndex({ index: "due", pk: dueShard(shard), upTo, limit: countedPerShard }),
    ),
  );
  const entries = pages.flatMap(({ items }) => items);
  const [oldest] = entries.toSorted((a, b) => (a.sort < b.sort ? -1 : 1));
  if (oldest === undefined) return { rows: 0 };
  return { rows: entries.length, oldest: { row: oldest.key, since: dueAtOf(oldest.sort) } };
}

/** A queue that cannot be counted hides no other queue. @throws when none can be counted. */
async function readDeadLetters(
  { deadLetters }: OwnParts,
  account: ApiPorts["account"],
): Promise<readonly DeadLetters[]> {
  const queues = Object.entries(deadLetters);
  const counted = await Promise.allSettled(queues.map(([, queueUrl]) => account.queueLength(queueUrl)));
  const [first] = counted;
  if (first?.status === "rejected" && counted.every(({ status }) => status === "rejected")) throw first.reason;
  return queues.map(([of, queueUrl], index) => {
    const one = counted[index];
    if (one?.status === "fulfilled") return { of, queueUrl, queueArn: one.value.arn, messages: one.value.messages };
    return { of, queueUrl, queueArn: "", messages: 0, uncounted: errorMessage(one?.reason) };
  });
}
