import { rolloutStatus } from "#cli/commands/rollout-status.ts";
import type { Session } from "#cli/session/session.ts";
import type { ReadPorts } from "#functions/api/http/read-routes.ts";
import { readWith } from "#functions/api/http/read-with.ts";
import { dashboardHandler } from "#functions/dashboard/dashboard-handler.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import { answerPage } from "#shared/pages/answer-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { type AwsAddresses, startAwsProcess } from "#test/bench/children.ts";
import { median, rounded } from "#test/bench/figures.ts";
import { measured } from "#test/bench/measure.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";

const defaultSizes = [100, 10_000] as const;
const defaultRounds = 5;
const defaultGroups = 50;
const namespace = "bench";
const watched = "watched";
/** The limit of requests for a view of a rollout of any size. */
const mostRequests = 20;
const mostCpuMs = 300;

const views = ["page", "widget", "status", "clusters", "overview"] as const;
type View = (typeof views)[number];

/** The views that the limits are for. */
const ofRollout: readonly View[] = ["page", "widget", "status"];

interface Cost extends Figures {
  readonly requests: number;
  readonly cpuMs: number;
  readonly ms: number;
  readonly kib: number;
}

/**
 * Measures the cost of one view, by the requests that the emulators receive. The views are the page, the widget and
 * `rollout status` of a rollout that half of the clusters have, with one cluster in a hundred failed; the first page of
 * its clusters; and the page of the fleet with its groups. The planner writes the rows. DynamoDB's emulator is a process of
 * its own, and the SDK reaches it over HTTP.
 */
export async function check({
  clusters: sizes = defaultSizes,
  rounds = defaultRounds,
  objects: groups = defaultGroups,
  say,
}: BenchOptions): Promise<BenchResult> {
  const figures: Record<string, Readonly<Record<View, Cost>>> = {};
  const ascending = [...sizes].sort((a, b) => a - b);
  for (const size of ascending) {
    figures[`${size}`] = await costsAt({ size, groups, rounds });
    say(`${size} clusters: ${JSON.stringify(figures[`${size}`])}`);
  }
  const [least = 0, most = 0] = [ascending[0], ascending.at(-1)];
  const ratio = (view: View) =>
    Number(figures[`${most}`]?.[view].requests) / Number(figures[`${least}`]?.[view].requests);
  const failures = ascending.flatMap((size) => failuresOf(size, figures[`${size}`]));
  const ratios = {
    [`requests${most}vs${least}`]: rounded(Math.max(...ofRollout.map(ratio))),
    [`overview${most}vs${least}`]: rounded(ratio("overview")),
  };
  return { target: "dynamodb", ratios, figures, failures };
}

function failuresOf(size: number, costs: Readonly<Record<View, Cost>> | undefined): readonly string[] {
  return ofRollout.flatMap((view) => {
    const { requests = 0, cpuMs = 0 } = costs?.[view] ?? {};
    return [
      ...(requests > mostRequests
        ? [`${view} of ${size}: ${requests} requests; at most ${mostRequests} are allowed`]
        : []),
      ...(cpuMs > mostCpuMs
        ? [`${view} of ${size}: ${cpuMs} ms of processor time; at most ${mostCpuMs} are allowed`]
        : []),
    ];
  });
}

interface Fleet {
  readonly size: number;
  readonly groups: number;
  readonly rounds: number;
}

async function costsAt({ size, groups, rounds }: Fleet): Promise<Readonly<Record<View, Cost>>> {
  const started = await startAwsProcess();
  const aws = awsClients(started.address);
  try {
    const ports = portsOf(started.address, aws);
    await makeRows({ size, groups }, ports);
    const readers = viewsOf(ports);
    const costs: Partial<Record<View, Cost>> = {};
    for (const view of views) costs[view] = await costOf(readers[view], rounds);
    return costs as Readonly<Record<View, Cost>>;
  } finally {
    for (const client of [aws.dynamo, aws.s3, aws.sqs, aws.secrets]) client.destroy();
    await started.stop();
  }
}

function portsOf(address: AwsAddresses, { dynamo, s3 }: ReturnType<typeof awsClients>): ReadPorts {
  return {
    table: new DynamoTable(dynamo, address.table),
    blobs: new S3BlobStore(s3, address.bucket),
    clock: systemClock,
    installation: namespace,
  };
}

/** One group in the middle of a rollout, and other groups that have started. */
async function makeRows({ size, groups }: Omit<Fleet, "rounds">, { table, blobs }: ReadPorts): Promise<void> {
  const stores = { table, blobs: blobs as S3BlobStore };
  const shape = { templates: 1, maxConcurrent: "10%", maxFailures: "50%" };
  const names = Array.from({ length: size }, (_, index) => `c-${String(index).padStart(5, "0")}`);
  const failing = (cluster: string) => cluster.endsWith("42");
  const first = new PlannedGroup({ name: watched, ...shape, failing }, stores);
  await first.create(names);
  await first.rollOut("half", first.call, { until: size / 2 });
  for (let at = 1; at < groups; at++) {
    const group = new PlannedGroup({ name: `g-${at}`, ...shape }, stores);
    await group.create([]);
    await group.call(new Set());
  }
}

/** Each view returns the text that a person sees. */
function viewsOf(ports: ReadPorts): Readonly<Record<View, () => Promise<string>>> {
  const ask = readWith(ports);
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const widget = dashboardHandler({ ...ports, log });
  const path = `/syncgroups/${namespace}/${watched}`;
  const page = async (where: string) => {
    const { status, main } = await answerPage(ask, { path: where, query: {} }, pageHost(new Date()));
    if (status !== 200) throw new Error(`${where} was answered with ${status}: ${main.toString()}`);
    return main.toString();
  };
  return {
    page: () => page(path),
    widget: () => widget({ path }, { invokedFunctionArn: "arn:aws:lambda:eu-west-1:1:function:d", awsRequestId: "1" }),
    clusters: () => page(`${path}/clusters`),
    overview: () => page("/"),
    async status() {
      const parts: string[] = [];
      const session = {
        io: { out: (part: string) => void parts.push(part), now: () => new Date() },
        options: {},
        api: { call: ({ path: asked, query }: { path: string; query?: Record<string, string> }) => ask(asked, query) },
        namespace: () => namespace,
        note: () => {},
      };
      await rolloutStatus(session as unknown as Session, watched, {});
      return parts.join("");
    },
  };
}

async function costOf(take: () => Promise<string>, rounds: number): Promise<Cost> {
  const found: Cost[] = [];
  for (let round = 0; round <= rounds; round++) {
    let text = "";
    const { requests, cpuMs, ms } = await measured(async () => {
      text = await take();
    });
    const all = [...requests.values()].reduce((sum, one) => sum + one, 0);
    // The first view opens connections and compiles code.
    if (round > 0) found.push({ requests: all, cpuMs, ms, kib: text.length / 1024 });
  }
  const middle = (figure: "requests" | "cpuMs" | "ms" | "kib") => rounded(median(found.map((one) => one[figure])));
  return { requests: middle("requests"), cpuMs: middle("cpuMs"), ms: middle("ms"), kib: middle("kib") };
}
