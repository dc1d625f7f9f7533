import { planSubject } from "#functions/rollout/plan-subject.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { digestOf } from "#shared/base/digest.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { isThrough } from "#shared/fleet/rollout/feed.ts";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys, type Subject, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import type { Message } from "#shared/messages.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { startAwsProcess } from "#test/bench/children.ts";
import { rounded } from "#test/bench/figures.ts";
import { measured } from "#test/bench/measure.ts";

const defaultSizes = [10, 100, 1000, 10_000] as const;
/** Clusters that one message to the planner names: the Syncs of one batch of reports. */
const clustersTold = 10;
const shapes = [
  { templates: 1, maxConcurrent: "10%" },
  { templates: 1, maxConcurrent: "100%" },
  { templates: 5, maxConcurrent: "10%" },
  { templates: 5, maxConcurrent: "100%" },
] as const;
type Shape = (typeof shapes)[number];

interface Cost extends Figures {
  readonly targets: number;
  readonly requestsPerTarget: number;
  readonly readUnitsPerTarget: number;
  readonly writeUnitsPerTarget: number;
  readonly cpuMsPerTarget: number;
  readonly calls: number;
  /** Requests of the call that made most, one after the other or not. */
  readonly mostRequests: number;
  readonly idleRequests: number;
  readonly idleReadUnits: number;
}

/**
 * What the planner alone costs: a second content goes through fleets of several sizes, with workers that are modelled by
 * the rows that they write. Rows are in DynamoDB's emulator, in a process of its own, by the SDK over HTTP.
 */
export async function planner({ clusters: sizes = defaultSizes, say }: BenchOptions): Promise<BenchResult> {
  const figures: Record<string, Cost> = {};
  for (const shape of shapes) {
    for (const size of sizes) {
      const name = `${size} x ${shape.templates} at ${shape.maxConcurrent}`;
      figures[name] = await measure(size, shape);
      say(`${name}: ${JSON.stringify(figures[name])}`);
    }
  }
  const of = (size: number | undefined, { templates, maxConcurrent }: Shape) =>
    figures[`${size} x ${templates} at ${maxConcurrent}`];
  const [least, small, most] = [
    Math.min(...sizes),
    sizes.find((size) => size >= 100) ?? Math.min(...sizes),
    Math.max(...sizes),
  ];
  /** The worst of the shapes. */
  const ratio = (figure: keyof Cost, base: number) =>
    rounded(Math.max(...shapes.map((shape) => Number(of(most, shape)?.[figure]) / Number(of(base, shape)?.[figure]))));
  return {
    target: "dynamodb",
    ratios: {
      [`readsPerTarget${most}vs${small}`]: ratio("readUnitsPerTarget", small),
      [`requestsPerTarget${most}vs${small}`]: ratio("requestsPerTarget", small),
      [`writesPerTarget${most}vs${small}`]: ratio("writeUnitsPerTarget", small),
      [`cpuPerTarget${most}vs${small}`]: ratio("cpuMsPerTarget", small),
      [`idleLook${most}vs${least}`]: Math.max(ratio("idleRequests", least), ratio("idleReadUnits", least)),
    },
    figures,
    failures: [],
  };
}

const subject: Subject = { namespace: "bench", kind: "SyncGroup", name: "web" };

async function measure(size: number, shape: Shape): Promise<Cost> {
  const started = await startAwsProcess();
  const aws = awsClients(started.address);
  const units = { read: 0, write: 0 };
  aws.dynamo.middlewareStack.add(
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
  const table = new DynamoTable(aws.dynamo, started.address.table);
  const blobs = new S3BlobStore(aws.s3, started.address.bucket);
  const sent: Message[] = [];
  const spent = { requests: 0, cpuMs: 0, read: 0, write: 0, calls: 0, most: 0 };
  const clock = { now: new Date() };

  async function call(clusters?: ReadonlySet<string>): Promise<void> {
    const before = { ...units };
    const { requests, cpuMs } = await measured(() =>
      planSubject(
        subject,
        { until: new Date(clock.now.getTime() + 60_000), ...(clusters === undefined ? {} : { clusters }) },
        {
          table,
          blobs,
          sender: { send: async (messages) => void sent.push(...messages) },
          clock: { now: () => clock.now },
          ids: randomIds,
          log: { info: () => {}, warn: () => {}, error: () => {} },
          installation: "bench",
        },
      ),
    );
    const count = [...requests.values()].reduce((sum, one) => sum + one, 0);
    spent.requests += count;
    spent.most = Math.max(spent.most, count);
    spent.cpuMs += cpuMs;
    spent.read += units.read - before.read;
    spent.write += units.write - before.write;
    spent.calls++;
  }

  /** Plays renderers and workers, until every stage is on the newest content. */
  async function rollOut(): Promise<void> {
    await call(new Set());
    for (;;) {
      const renders = sent.filter((message) => message.to === "render");
      const applies = new Set(sent.flatMap((message) => (message.to === "apply" ? [message.cluster] : [])));
      sent.length = 0;
      for (const { input } of renders) await render(table, input);
      if (renders.length > 0) await call(new Set());
      for (const told of inParts([...applies], clustersTold)) {
        await work(table, told, shape.templates, clock.now);
        await call(new Set(told));
      }
      const unit = await table.get(keys.unit(subject));
      if (unit !== undefined && isThrough(unit)) return;
      if (renders.length + applies.size === 0)
        throw new Error(`the rollout stands still: ${JSON.stringify(unit?.stages)}`);
    }
  }

  try {
    for (const part of inParts(
      Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, "0")}`),
      40,
    ))
      await table.write(part.map((name) => ({ put: fleetRow(name) })));
    await table.write([fleetVersionUpdate("c")]);
    await table.write([{ put: groupRow(shape, 1) }]);
    await setSource(table, "one");
    await rollOut();
    await setSource(table, "two");
    Object.assign(spent, { requests: 0, cpuMs: 0, read: 0, write: 0, calls: 0, most: 0 });
    await rollOut();
    const whole = { ...spent };
    clock.now = new Date(clock.now.getTime() + 3_600_000);
    await call();
    Object.assign(spent, { requests: 0, read: 0 });
    clock.now = new Date(clock.now.getTime() + 3_600_000);
    await call();
    const per = (count: number) => rounded(count / size);
    return {
      targets: size,
      requestsPerTarget: per(whole.requests),
      readUnitsPerTarget: per(whole.read),
      writeUnitsPerTarget: per(whole.write),
      cpuMsPerTarget: per(whole.cpuMs),
      calls: whole.calls,
      mostRequests: whole.most,
      idleRequests: spent.requests,
      idleReadUnits: spent.read,
    };
  } finally {
    for (const client of [aws.dynamo, aws.s3, aws.sqs, aws.secrets]) client.destroy();
    await started.stop();
  }
}

function fleetRow(name: string): Row {
  const more = { name, uid: name, labels: { ring: "all" }, values: {} };
  return { ...keys.fleet(name), type: "Fleet", schema: rowSchema, version: 1, ...more };
}

const objectParts = {
  schema: rowSchema,
  namespace: subject.namespace,
  labels: {},
  annotations: {},
  generation: 1,
  createdAt: "2026-01-01T00:00:00.000Z",
  operations: {},
};

function groupRow({ templates, maxConcurrent }: Shape, version: number): Row {
  const spec = syncGroupSpec.parse({
    clusters: { all: true },
    templates: Array.from({ length: templates }, (_, index) => ({
      name: `t${index}`,
      source: "app",
      path: `t${index}`,
    })),
    rollout: { maxConcurrent },
  });
  const key = keys.object(subject.namespace, "SyncGroup", subject.name);
  const more = { name: subject.name, uid: "web", spec, status: { conditions: [] } };
  return { ...key, ...objectParts, type: "SyncGroup", version, ...more };
}

async function setSource(table: DynamoTable, content: string): Promise<void> {
  const key = keys.object(subject.namespace, "Source", "app");
  const before = await table.get(key);
  const artifact = {
    revision: `main@sha1:${content}`,
    digest: digestOf(content),
    sizeBytes: 1,
    files: 1,
    storedAt: "",
    subject: "",
    author: "",
  };
  const spec = sourceSpec.parse({ git: { url: "https://git.example/app" } });
  const version = (before?.version ?? 0) + 1;
  const row = {
    ...key,
    ...objectParts,
    type: "Source",
    name: "app",
    uid: "app",
    version,
    spec,
    status: { artifact, conditions: [] },
  };
  await table.write([{ put: row }]);
}

async function render(table: DynamoTable, input: string): Promise<void> {
  const row = await table.get(keys.rendering(input));
  if (row?.state !== "Pending") return;
  const { dueShard: _shard, dueKey: _key, waiting: _waiting, ...rest } = row;
  const done = { ...rest, state: "Done", digest: digestOf(input), objects: 1, version: row.version + 1 };
  await table.write([{ put: done, when: { version: row.version } }]);
}

/** What workers write that found everything ready. */
async function work(table: DynamoTable, clusters: readonly string[], templates: number, now: Date): Promise<void> {
  const names = Array.from({ length: templates }, (_, index) => `${subject.name}.t${index}`);
  const rows = await table.getMany(
    clusters.flatMap((cluster) => names.map((name) => keys.sync(cluster, subject.namespace, name))),
  );
  for (const part of inParts(
    rows.map((row) => ready(row, now)),
    90,
  ))
    await table.write(part.map((row) => ({ put: row, when: { version: row.version - 1 } })));
}

function ready(row: SyncRow, now: Date): SyncRow {
  const at = now.toISOString();
  const { attempt, revision, renderDigest = "" } = row.desired;
  const observed: Observed = {
    attempt,
    phase: "Ready",
    reason: "Ready",
    message: "",
    startedAt: at,
    since: at,
    at,
    tries: 0,
    applied: { renderDigest, revision, attempt, at },
    objects: { total: 1, ready: 1, failed: 0, foreign: 0 },
    troubles: [],
    fence: 1,
    conditions: [],
  };
  return { ...row, observed, version: row.version + 1, stateSk: stateIndex.sk("Ready", row) };
}
