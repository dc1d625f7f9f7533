/** All of Starling on this machine, with clusters and a git server, and functions that control it. */

import { appendFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ScanCommand, type ScanCommandOutput } from "@aws-sdk/lib-dynamodb";
import type { EventSourceLoop, InvocationReport } from "#local/aws/lambda/event-source-loop.ts";
import { callLine, createCallRecorder, type RecordedCall } from "#local/aws/proxy/call-recorder.ts";
import { everyday } from "#local/aws/wire/fault-options.ts";
import { type PacedClock, pacedClock } from "#local/base/paced-clock.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { type GitServer, type GitServerOptions, startGitServer } from "#local/git/git-server.ts";
import { sendGithubPush } from "#local/git/github-push.ts";
import { type FileChanges, zeroId } from "#local/git/repository.ts";
import type { ApiSession } from "#local/machine/api-session.ts";
import { type Machine, type MachineOptions, startMachine } from "#local/machine/machine.ts";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { skewedSandboxes } from "#local/machine/skewed-sandboxes.ts";
import { unpackedRow } from "#shared/adapters/aws/row-form.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type {
  ApiList,
  ClusterObject,
  RolloutObject,
  SourceObject,
  SyncGroupObject,
  SyncObject,
  TargetItem,
} from "#shared/fleet/api/objects.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { type ChangeMonitor, watchChanges } from "#test/support/change-monitor.ts";
import { embeddedFleet, type Fleet, type FleetTarget } from "#test/support/fleet.ts";
import { byHand, type KubeAnswer, type KubeCall } from "#test/support/kube-call.ts";
import { openPatientSession } from "#test/support/patient-session.ts";
import { runSeed } from "#test/support/run-seed.ts";

/** The namespace of everything that these tests apply. */
export const namespace = "shop";

/** The number of the functions' seconds in one real second. A watchdog of 30 s comes after 3 s. */
const defaultRate = 10;
const tickEveryMs = 250;
const defaultPollMs = 50;
const defaultPatienceSeconds = 120;
/** The largest error of the functions' clocks by default, in their milliseconds, as on a bad day of NTP. */
const mostOffMs = 500;

/** By default, faults and clocks are those of an everyday. A test that needs none sets `quiet`. */
export interface WorldOptions
  extends Pick<
    MachineOptions,
    | "account"
    | "copies"
    | "faults"
    | "guard"
    | "seed"
    | "timeoutSeconds"
    | "zones"
    | "sandboxes"
    | "code"
    | "tickEveryMs"
    | "installation"
    | "overrun"
    | "onLine"
  > {
  readonly target?: FleetTarget;
  readonly rate?: number;
  /** A clock instead of the default one, which runs at `rate`. */
  readonly clock?: PacedClock;
  /** Whether the git server announces pushes. With "silent", only the Source's interval finds them. */
  readonly webhook?: "tells" | "silent";
  /** The time between two polls of a condition. */
  readonly pollMs?: number;
  /** Decides how requests to the git server fail. */
  readonly disturbGit?: NonNullable<GitServerOptions["disturb"]>;
}

export interface NewCluster {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, string>>;
  /** The zone whose workers reach it. The default is `home`. */
  readonly zone?: string;
}

export interface World {
  readonly machine: Machine;
  readonly session: ApiSession;
  readonly git: GitServer;
  /** The authority of the git server in PEM. */
  readonly gitCa: string;
  readonly fleet: Fleet;
  readonly clock: PacedClock;
  readonly monitor: ChangeMonitor;
  /** The functions' calls to AWS. When the world closes, they are also written to the file that STARLING_RECORD_CALLS names. */
  calls(): readonly RecordedCall[];
  /** Starts clusters and registers them. */
  join(...clusters: readonly NewCluster[]): Promise<void>;
  createRepository(repository: string, files: FileChanges): Promise<string>;
  /** Commits to `main`, at times that are the same in every run. Gives the commit's id. */
  push(repository: string, files: FileChanges): Promise<string>;
  apply(...documents: readonly unknown[]): Promise<void>;
  group(name: string): Promise<SyncGroupObject>;
  source(name: string): Promise<SourceObject>;
  cluster(name: string): Promise<ClusterObject>;
  rollout(group: string, number?: number): Promise<RolloutObject>;
  targets(group: string, number?: number): Promise<readonly TargetItem[]>;
  sync(cluster: string, name: string): Promise<SyncObject | undefined>;
  /** Somebody's hand in a cluster, past Starling. */
  kubectl(cluster: string, call: KubeCall): Promise<KubeAnswer>;
  /** Every row of the table. */
  rows(): Promise<readonly Row[]>;
  /** Polls until the probe returns a value. After `seconds` it fails and describes the world. */
  waitFor<T>(what: string, probe: () => Promise<T | undefined | false>, seconds?: number): Promise<T>;
  /** Waits until every cluster of the group runs this commit and the group reports it. */
  untilInSync(group: string, commit: string, seconds?: number): Promise<SyncGroupObject>;
  /** A description of the world for a person. */
  describe(): Promise<string>;
  close(): Promise<void>;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const {
    target = embeddedFleet,
    rate = defaultRate,
    webhook = "tells",
    pollMs = defaultPollMs,
    disturbGit,
    ...machineOptions
  } = options;
  const { clock = pacedClock(rate), seed = runSeed() } = options;
  const problems: string[] = [];
  const stops: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const stop of stops.splice(0)) await stop();
  };
  try {
    const tls = await createTlsCertificate();
    const recorder = createCallRecorder();
    const sandboxes = machineOptions.sandboxes ?? skewedSandboxes({ clock, seed, mostOffMs });
    const machine = await startMachine({
      tickEveryMs,
      faults: everyday,
      // Clusters leave the groups of most tests without a question.
      guard: "none",
      ...machineOptions,
      sandboxes: (name, wire) =>
        sandboxes(name, (own) =>
          wire({ ...own, aws: (clients) => recorder.watch(name, own?.aws?.(clients) ?? clients) }),
        ),
      seed,
      clock,
      gitCa: tls.cert,
      onInvocation: (report) => noteProblem(problems, report),
    });
    stops.unshift(() => machine.stop());
    stops.unshift(() => keepRecord(recorder.calls()));
    const fleet = await target.start(() => clock.now().getTime());
    stops.push(() => fleet.stop());
    const root = await mkdtemp(join(tmpdir(), "starling-e2e-"));
    stops.push(() => rm(root, { recursive: true, force: true }));
    const git = await startGitServer({
      root,
      tls,
      ...defined({ disturb: disturbGit }),
      async onPush(repository, updates) {
        for (const update of webhook === "tells" ? updates : []) {
          if (update.before === zeroId && update.after === zeroId) continue;
          const { url, secret } = machine.webhook;
          // Like GitHub, the server does not repeat a failed delivery. The Source's interval finds the commit.
          await sendGithubPush({ webhookUrl: url, secret, repository, cloneUrl: git.url(repository), update }).catch(
            () => {},
          );
        }
      },
    });
    stops.splice(2, 0, () => git.stop());
    const monitor = watchChanges();
    fleet.onRequest(monitor.onRequest);
    machine.proxy.intercept({ after: monitor.onCall });
    return assemble({
      machine,
      fleet,
      git,
      gitCa: tls.cert,
      clock,
      monitor,
      calls: recorder.calls,
      problems,
      pollMs,
      close,
    });
  } catch (error) {
    await close();
    throw error;
  }
}

type Parts = Pick<World, "machine" | "fleet" | "git" | "gitCa" | "clock" | "monitor" | "calls" | "close"> & {
  readonly problems: readonly string[];
  readonly pollMs: number;
};

function assemble(parts: Parts): World {
  const { machine, fleet, git } = parts;
  const session = openPatientSession(machine.api);
  const scope = `/v1/namespaces/${namespace}`;
  let commits = 0;

  function get<T>(path: string): Promise<T> {
    return session.call<T>("GET", path);
  }
  async function rolloutNumber(group: string, number: number | undefined): Promise<number> {
    return number ?? (await world.group(group)).status.rollout ?? 0;
  }

  const world: World = {
    ...parts,
    session,
    async join(...clusters) {
      const started = clusters.map(async ({ name, ...rest }) => ({ connection: await fleet.add(name), ...rest }));
      const registered = await Promise.all(started);
      await registerClusters(registered, machine, session);
    },
    async createRepository(repository, files) {
      await git.createRepository(repository);
      return world.push(repository, files);
    },
    push(repository, files) {
      const at = new Date(Date.UTC(2026, 0, 1) + commits * 60_000);
      commits += 1;
      return git.commitFiles(repository, files, { message: `Change ${commits}`, at });
    },
    apply: (...documents) => session.apply(documents),
    group: (name) => get(`${scope}/syncgroups/${name}`),
    source: (name) => get(`${scope}/sources/${name}`),
    cluster: (name) => get(`/v1/clusters/${name}`),
    rollout: async (group, number) =>
      get(`${scope}/syncgroups/${group}/rollouts/${await rolloutNumber(group, number)}`),
    async targets(group, number) {
      const path = `${scope}/syncgroups/${group}/rollouts/${await rolloutNumber(group, number)}/targets?limit=500`;
      return (await get<ApiList<TargetItem>>(path)).items;
    },
    async sync(cluster, name) {
      const { items } = await get<ApiList<SyncObject>>(`/v1/clusters/${cluster}/syncs`);
      return items.find((item) => item.metadata.name === name);
    },
    kubectl: (cluster, call) => byHand(fleet.connection(cluster), call),
    rows: () => scan(machine),
    async waitFor(what, probe, seconds = defaultPatienceSeconds) {
      const deadline = performance.now() + seconds * 1000;
      for (;;) {
        const found = await probe();
        if (found !== undefined && found !== false) return found;
        if (performance.now() >= deadline)
          throw new Error(`not within ${seconds} s: ${what}\n${await world.describe()}`);
        await sleep(parts.pollMs);
      }
    },
    untilInSync: (name, commit, seconds) =>
      world.waitFor(
        `${name} in sync at ${commit.slice(0, 8)}`,
        async () => {
          const group = await world.group(name);
          const ready = group.status.conditions.find(({ type }) => type === "Ready");
          const there = group.status.revision?.endsWith(commit) === true && group.status.state === "Complete";
          return there && ready?.status === "True" && group;
        },
        seconds,
      ),
    describe: () => describeWorld(world, parts.problems),
  };
  return world;
}

async function keepRecord(calls: readonly RecordedCall[]): Promise<void> {
  const file = process.env.STARLING_RECORD_CALLS;
  if (file !== undefined) await appendFile(file, calls.map((call) => `${callLine(call)}\n`).join(""));
}

function noteProblem(problems: string[], report: InvocationReport): void {
  if (report.outcome === "returned" && report.failedMessageIds.length === 0) return;
  const error = report.error === undefined ? "" : `: ${errorMessage(report.error)}`;
  problems.push(`${report.functionName} ${report.outcome}, ${report.failedMessageIds.length} messages back${error}`);
}

async function scan(machine: Machine): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let start: ScanCommandOutput["LastEvaluatedKey"];
  do {
    const page = await machine.aws.dynamo.send(
      new ScanCommand({
        TableName: machine.environment.table,
        ConsistentRead: true,
        ...defined({ ExclusiveStartKey: start }),
      }),
    );
    rows.push(...((page.Items ?? []).map(unpackedRow) as Row[]));
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
  return rows;
}

const shownProblems = 15;

async function describeWorld(world: World, problems: readonly string[]): Promise<string> {
  const lines: string[] = [`now ${world.clock.now().toISOString()}`];
  try {
    for (const row of await world.rows()) lines.push(...describeRow(row as Row & Record<string, unknown>));
  } catch (error) {
    lines.push(`the table cannot be read: ${errorMessage(error)}`);
  }
  const running = [...world.machine.sources].map(([queue, sources]) => `${queue} ${sum(sources)}`);
  lines.push(`running ${running.join(", ")}`);
  lines.push(`injected ${JSON.stringify(world.machine.proxy.injected())}`);
  lines.push(...problems.slice(-shownProblems));
  return lines.join("\n");
}

function sum(sources: readonly EventSourceLoop[]): number {
  return sources.reduce((total, source) => total + source.running(), 0);
}

function describeRow(row: Row & Record<string, unknown>): readonly string[] {
  const shown = shownFields[row.type];
  if (shown === undefined) return [];
  const fields = Object.fromEntries(shown.map((field) => [field, at(row, field)]));
  const due = row.dueKey === undefined ? "" : ` due ${row.dueKey.split("#")[0]}`;
  return [`${row.pk} ${row.sk} v${row.version}${due} ${JSON.stringify(fields)}`];
}

function at(value: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value);
}

const shownFields: Readonly<Record<string, readonly string[]>> = {
  Source: ["status.artifact.revision", "status.conditions"],
  SyncGroup: ["status.state", "status.revision", "status.rollout", "status.clusters", "status.conditions"],
  Sync: ["status.state", "status.revision", "status.conditions"],
  RolloutState: ["last", "stages", "catchUps", "jobs", "checking", "skipped"],
  StageRun: ["phase", "reason", "message", "counts", "next", "holds", "returned"],
  Slot: ["stageRun", "rollout", "attempts", "releasing"],
  CatchUp: ["why", "reason"],
  Target: ["state", "reason", "attempts"],
  SyncOnCluster: [
    "desired.attempt",
    "desired.action",
    "observed.attempt",
    "observed.phase",
    "observed.reason",
    "observed.message",
    "observed.problems",
    "observed.nextAt",
    "observed.fence",
    "deaths.alone",
  ],
  Rendering: ["state", "failure", "tries", "claim"],
  Lease: ["owner", "leaseUntil", "desired", "fence", "begun"],
};
