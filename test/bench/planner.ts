import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { startAwsProcess } from "#test/bench/children.ts";
import { median, rounded } from "#test/bench/figures.ts";
import { measured } from "#test/bench/measure.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";

const defaultSizes = [10, 100, 1000, 10_000] as const;
const shapes = [
  { templates: 1, maxConcurrent: "10%" },
  { templates: 1, maxConcurrent: "100%" },
  { templates: 5, maxConcurrent: "10%" },
  { templates: 5, maxConcurrent: "100%" },
] as const;
/** An approval and a bake, in groups that are otherwise like the second shape. */
const gated = { ...shapes[1], gates: true } as const;
const largestGated = 1000;
type Shape = (typeof shapes)[number] | typeof gated;

/**
 * The least number of targets in the counted rounds together. A small fleet would otherwise be measured for a moment
 * only.
 */
const leastTargets = 1000;
const defaultRounds = 10;
/** The approximate time of a request to DynamoDB or S3 in a region. */
const requestSeconds = 0.006;

interface Cost extends Figures {
  readonly rounds: number;
  readonly requestsPerTarget: number;
  readonly readUnitsPerTarget: number;
  readonly writeUnitsPerTarget: number;
  readonly cpuMsPerTarget: number;
  readonly callsPerTarget: number;
  /** The time of the longest call if its requests ran one after another, including the first rollout. */
  readonly longestCallSeconds: number;
  readonly idleRequests: number;
  readonly idleReadUnits: number;
}

/**
 * Measures the cost of the planner alone: rollouts go through fleets of several sizes, and workers are simulated by the
 * rows that they write. The rows are in DynamoDB's emulator, in a process of its own, by the SDK over HTTP.
 */
export async function planner({
  clusters: sizes = defaultSizes,
  rounds = defaultRounds,
  say,
}: BenchOptions): Promise<BenchResult> {
  const figures: Record<string, Cost> = {};
  const started = await startAwsProcess();
  try {
    const ascending = [...sizes].sort((a, b) => a - b);
    let registered = 0;
    for (const size of ascending) {
      for (const shape of [...shapes, ...(size > largestGated ? [] : [gated])]) {
        const name = nameOf(size, shape);
        figures[name] = await measure({ size, registered, rounds }, { shape, address: started.address });
        registered = size;
        say(`${name}: ${JSON.stringify(figures[name])}`);
      }
    }
    return { target: "dynamodb", ratios: ratiosOf(figures, ascending), figures, failures: [] };
  } finally {
    await started.stop();
  }
}

function nameOf(size: number, shape: Shape): string {
  return `${size} x ${shape.templates} at ${shape.maxConcurrent}${"gates" in shape ? " with gates" : ""}`;
}

function rolloutOf(shape: Shape): Readonly<Record<string, unknown>> {
  if (!("gates" in shape)) return {};
  const approval = { by: ["arn:aws:iam::*:role/sre"] };
  return { stages: [{ name: "all", before: [{ approval }], after: [{ bake: "30m" }] }] };
}

/** Each ratio is the worst of all shapes. */
function ratiosOf(figures: Readonly<Record<string, Cost>>, sizes: readonly number[]): Record<string, number> {
  const [least = 0, most = 0] = [sizes[0], sizes.at(-1)];
  const small = sizes.find((size) => size >= 100) ?? least;
  const ratio = (figure: keyof Cost, base: number) => {
    const of = (size: number, shape: Shape) => Number(figures[nameOf(size, shape)]?.[figure]);
    return rounded(Math.max(...shapes.map((shape) => of(most, shape) / of(base, shape))));
  };
  return {
    [`readsPerTarget${most}vs${small}`]: ratio("readUnitsPerTarget", small),
    [`requestsPerTarget${most}vs${small}`]: ratio("requestsPerTarget", small),
    [`writesPerTarget${most}vs${small}`]: ratio("writeUnitsPerTarget", small),
    [`cpuPerTarget${most}vs${small}`]: ratio("cpuMsPerTarget", small),
    [`idleCheck${most}vs${least}`]: Math.max(ratio("idleRequests", least), ratio("idleReadUnits", least)),
    ...gateRatios(figures, sizes),
    longestCallSeconds: Math.max(...Object.values(figures).map(({ longestCallSeconds }) => longestCallSeconds)),
  };
}

/** The further requests for each target of the largest fleet with gates, by the same fleet without. */
function gateRatios(figures: Readonly<Record<string, Cost>>, sizes: readonly number[]): Record<string, number> {
  const size = sizes.findLast((one) => one <= largestGated);
  const [without, given] = size === undefined ? [] : [shapes[1], gated].map((shape) => figures[nameOf(size, shape)]);
  if (without === undefined || given === undefined) return {};
  return { [`gateRequestsPerTarget${size}`]: rounded(given.requestsPerTarget - without.requestsPerTarget) };
}

interface Fleet {
  readonly size: number;
  /** The number of clusters that smaller fleets have registered. */
  readonly registered: number;
  /** The largest number of rounds. */
  readonly rounds: number;
}

interface Place {
  readonly shape: Shape;
  readonly address: Awaited<ReturnType<typeof startAwsProcess>>["address"];
}

async function measure({ size, registered, rounds: mostRounds }: Fleet, { shape, address }: Place): Promise<Cost> {
  const aws = awsClients(address);
  const units = countUnits(aws);
  const nothing = { requests: 0, cpuMs: 0, read: 0, write: 0, calls: 0 };
  const spent = { ...nothing };
  let longestCallSeconds = 0;
  const kind = "gates" in shape ? "-gates" : "";
  const name = `g-${size}-${shape.templates}-${shape.maxConcurrent.replace("%", "")}${kind}`;
  const group = new PlannedGroup(
    { name, ...shape, rollout: rolloutOf(shape) },
    { table: new DynamoTable(aws.dynamo, address.table), blobs: new S3BlobStore(aws.s3, address.bucket) },
  );

  async function call(clusters?: ReadonlySet<string>): Promise<void> {
    const before = { ...units };
    const { requests, cpuMs } = await measured(() => group.call(clusters));
    const count = [...requests.values()].reduce((sum, one) => sum + one, 0);
    spent.requests += count;
    spent.cpuMs += cpuMs;
    spent.read += units.read - before.read;
    spent.write += units.write - before.write;
    spent.calls++;
    longestCallSeconds = Math.max(longestCallSeconds, count * requestSeconds + cpuMs / 1000);
  }

  async function spentIn(work: () => Promise<void>): Promise<typeof spent> {
    Object.assign(spent, nothing);
    await work();
    return { ...spent };
  }

  try {
    const fresh = Array.from({ length: size - registered }, (_, index) => registered + index);
    await group.create(fresh.map((index) => `c-${String(index).padStart(5, "0")}`));
    await group.rollOut(`${name} 0`, call);
    const rounds: (typeof spent)[] = [];
    while (rounds.length < Math.min(mostRounds, leastTargets / size))
      rounds.push(await spentIn(() => group.rollOut(`${name} ${rounds.length + 1}`, call)));
    group.anHourLater();
    await call();
    group.anHourLater();
    const idle = await spentIn(() => call());
    const perTarget = (figure: keyof typeof spent) => rounded(median(rounds.map((round) => round[figure])) / size);
    return {
      rounds: rounds.length,
      requestsPerTarget: perTarget("requests"),
      readUnitsPerTarget: perTarget("read"),
      writeUnitsPerTarget: perTarget("write"),
      cpuMsPerTarget: perTarget("cpuMs"),
      callsPerTarget: perTarget("calls"),
      longestCallSeconds: rounded(longestCallSeconds),
      idleRequests: idle.requests,
      idleReadUnits: idle.read,
    };
  } finally {
    for (const client of [aws.dynamo, aws.s3, aws.sqs, aws.secrets]) client.destroy();
  }
}

/** Counts the capacity units of a client's requests from now on. */
function countUnits({ dynamo }: ReturnType<typeof awsClients>): { readonly read: number; readonly write: number } {
  const units = { read: 0, write: 0 };
  dynamo.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        Object.assign(args.input, { ReturnConsumedCapacity: "TOTAL" });
        const result = await next(args);
        const { ConsumedCapacity: consumed } = result.output as { readonly ConsumedCapacity?: unknown };
        const all = [consumed ?? []].flat() as { readonly CapacityUnits?: number }[];
        const sum = all.reduce((total, { CapacityUnits = 0 }) => total + CapacityUnits, 0);
        units[/^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(commandName) ? "write" : "read"] += sum;
        return result;
      },
    { step: "initialize" },
  );
  return units;
}
