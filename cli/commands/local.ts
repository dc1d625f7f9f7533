import { readFileSync } from "node:fs";
import {
  askMachine,
  forgetContext,
  type LocalOptions,
  logFile,
  machineApi,
  machineIn,
  maxClusters,
  printMachine,
  publicMachine,
  runningMachine,
  stateFlag,
  stateFolder,
} from "#cli/commands/local-folder.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { CliFailure, type ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { removalCommand } from "#local/clusters/own-cluster.ts";
import type { ApiSession } from "#local/machine/api-session.ts";
import type { ListedFaults } from "#local/serve/control-server.ts";
import { holderOf, isServing, type MachineFile } from "#local/serve/machine-file.ts";
import { describeClusters } from "#local/serve/state-folder.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ApiList, ClusterObject, SyncGroupObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { formatAge } from "#shared/words/age.ts";
import { objectState } from "#shared/words/object-state.ts";

const stopSeconds = 30;
const killSeconds = 10;
const pollMs = 100;
const syncPage = 500;
const clustersShown = 10;

/** Stops the machine, and waits until it has ended. Its state stays for the next `up`. */
export async function localDown(session: Session, options: LocalOptions): Promise<ExitReason> {
  const folder = stateFolder(session, options);
  const machine = machineIn(folder);
  forgetContext(session, machine);
  const pid = holderOf(folder);
  if (pid === undefined) {
    session.io.out("local is down\n");
    return "done";
  }
  if (!(await endsBy(session, { pid, signal: "SIGTERM", seconds: stopSeconds }))) {
    // A process that is out of memory, or stopped, handles no other signal. The next start finds what was saved.
    session.note(`process ${pid} does not end after SIGTERM, and is killed`);
    if (!(await endsBy(session, { pid, signal: "SIGKILL", seconds: killSeconds }))) {
      throw new CliFailure(`process ${pid} does not end`, { exit: "no", next: `ps -fp ${pid}` });
    }
  }
  session.io.out("local is down\n");
  if (machine?.kept.kind === "kubeconfig") {
    const { context, path } = machine.kept;
    session.note(`objects that were applied to ${context} stay, and Starling's account stays; to remove its access:`);
    session.note(`  ${removalCommand({ kubeconfig: path, context })}`);
  }
  session.note(`  next: starling local up${stateFlag(session, folder)}   (its state is in ${folder})`);
  return "done";
}

interface EndOfMachine {
  readonly pid: number;
  readonly signal: "SIGTERM" | "SIGKILL";
  readonly seconds: number;
}

/** @returns whether the machine ends within the time. */
async function endsBy(session: Session, { pid, signal, seconds }: EndOfMachine): Promise<boolean> {
  process.kill(pid, signal);
  const deadline = Date.now() + seconds * 1000;
  while (isServing(pid)) {
    if (Date.now() > deadline) return false;
    await session.pause(pollMs);
  }
  return true;
}

/** Prints the kubeconfig. A user's own kubeconfig is named, not printed. */
export async function localKubeconfig(session: Session, options: LocalOptions): Promise<ExitReason> {
  const folder = stateFolder(session, options);
  const machine = runningMachine(session, folder);
  if (machine.kept.kind === "kubeconfig") {
    throw new CliFailure(`the cluster is your own: context ${machine.kept.context} of ${machine.kubeconfig}`, {
      exit: "no",
      next: `export KUBECONFIG=${quoted(machine.kubeconfig)}`,
    });
  }
  session.io.out(readFileSync(machine.kubeconfig, "utf8"));
  session.note(`  or: export KUBECONFIG=${quoted(machine.kubeconfig)}`);
  return "done";
}

/** Prints what runs at which address, and the states of clusters and groups. */
export async function localStatus(session: Session, options: LocalOptions): Promise<ExitReason> {
  const folder = stateFolder(session, options);
  const machine = machineIn(folder);
  if (machine === undefined) {
    const holder = holderOf(folder);
    const what = holder === undefined ? "local is down: nothing runs" : `local is starting: process ${holder}`;
    session.io.out(`${what} in ${folder}\n`);
    const elsewhere =
      options.state === undefined ? "   (for another state folder: starling local status --state DIR)" : "";
    session.note(`  next: starling local up${stateFlag(session, folder)}${elsewhere}`);
    return "no";
  }
  const shown = await whatItShows(session, machine);
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise({ ...publicMachine(machine), ...shown }, output));
    return "done";
  }
  printMachine(session, machine);
  const { api, git, clusters } = machine.ports;
  const ports = [`api ${api}`, `git ${git}`, ...(clusters === undefined ? [] : [`clusters ${clusters}`])];
  const lines = [
    `since:       ${machine.startedAt} (${formatAge(machine.startedAt, session.io.now())})`,
    `ports:       ${ports.join(", ")}`,
    `state:       ${machine.folder}`,
    `log:         ${logFile(machine.folder)}`,
    ...(machine.repository === undefined ? [] : [`repository:  ${machine.repository.url}`]),
    `kubeconfig:  ${machine.kubeconfig}`,
    `faults:      ${faultsText(shown.faults)}`,
    `clusters:    ${describeClusters(machine.kept)}: ${countsText(shown.clusterStates)}`,
  ];
  session.io.out(lines.map((line) => `  ${line}\n`).join(""));
  printClusters(session, shown.clusterItems);
  for (const group of shown.groups) {
    session.io.out(`  syncgroup:   ${group.name}  ${group.state}  ${group.ready}  ${group.revision}\n`);
  }
  return "done";
}

interface ShownCluster {
  readonly name: string;
  readonly state: string;
  /** Number of its Syncs by state. */
  readonly syncs: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

interface Shown {
  readonly clusterStates: Readonly<Record<string, number>>;
  /** Worst first. */
  readonly clusterItems: readonly ShownCluster[];
  readonly groups: readonly {
    readonly name: string;
    readonly state: string;
    readonly ready: string;
    readonly revision: string;
  }[];
  /** The targets that have faults. */
  readonly faults: readonly ListedFaults[];
}

async function whatItShows(session: Session, machine: MachineFile): Promise<Shown> {
  const api = machineApi(session, machine);
  const faults = await askMachine(session, machine, { method: "GET" });
  try {
    const clusters = await api.call<ApiList<ClusterObject>>("GET", `/v1/clusters?limit=${maxClusters}`);
    const groups = await api.call<ApiList<SyncGroupObject>>("GET", "/v1/syncgroups?limit=100");
    const syncs = await syncsByCluster(api);
    const clusterItems = clusters.items.map((cluster): ShownCluster => {
      const { name } = cluster.metadata;
      const settings = faults.find(({ target }) => target === `clusters/${name}`)?.settings ?? [];
      return { name, state: objectState(cluster).word, syncs: syncs.get(name) ?? {}, faults: settings };
    });
    return {
      clusterStates: counts(clusterItems.map(({ state }) => state)),
      clusterItems: clusterItems.toSorted((left, right) => unwell(right) - unwell(left)),
      groups: groups.items.map((group) => ({
        name: `${group.metadata.namespace}/${group.metadata.name}`,
        state: objectState(group).word,
        ready: `${group.status.clusters?.ready ?? 0}/${group.status.clusters?.selected ?? 0}`,
        revision: group.status.revision ?? "-",
      })),
      faults: faults.filter(({ settings }) => settings.length > 0),
    };
  } catch (error) {
    const message = `process ${machine.pid} runs, but ${machine.endpoint} does not answer: ${errorMessage(error)}`;
    throw new CliFailure(message, { exit: "unknown", next: "starling local down" });
  }
}

/** A rank for sorting: unreachable clusters come first, then Syncs that are not ready, then faults. */
function unwell({ state, syncs, faults }: ShownCluster): number {
  const { Ready: _ready, ...others } = syncs;
  const away = state === "Unreachable" ? 4 : 0;
  return away + (Object.keys(others).length > 0 ? 2 : 0) + (faults.length > 0 ? 1 : 0);
}

async function syncsByCluster(api: ApiSession): Promise<ReadonlyMap<string, Readonly<Record<string, number>>>> {
  const words = new Map<string, string[]>();
  const syncs = allItems(async ({ after }) => {
    const from = after === undefined ? "" : `&continue=${encodeURIComponent(after)}`;
    const { items, metadata } = await api.call<ApiList<SyncObject>>("GET", `/v1/syncs?limit=${syncPage}${from}`);
    return { items, next: metadata.continue };
  });
  for await (const sync of syncs) {
    const { cluster } = sync.spec;
    words.set(cluster, [...(words.get(cluster) ?? []), objectState(sync).word]);
  }
  return new Map([...words].map(([cluster, states]) => [cluster, counts(states)]));
}

function counts(words: readonly string[]): Readonly<Record<string, number>> {
  const counted: Record<string, number> = {};
  for (const word of words) counted[word] = (counted[word] ?? 0) + 1;
  return counted;
}

function countsText(counted: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counted).map(([word, count]) => `${count} ${word}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

function faultsText(faults: readonly ListedFaults[]): string {
  const texts = faults.map(({ target, settings }) => `${target} ${settings.join(" ")}`);
  return texts.length === 0 ? "none" : texts.join("; ");
}

function printClusters(session: Session, clusters: readonly ShownCluster[]): void {
  const rows = clusters
    .slice(0, clustersShown)
    .map(({ name, state, syncs, faults }) => [name, state, countsText(syncs), faults.join(" ") || "-"]);
  session.io.out(
    formatTable(
      { columns: ["CLUSTER", "STATE", "SYNCS", "FAULTS"], rows },
      { headers: session.options.headers === false ? "hide" : "show", indent: "    " },
    ),
  );
  if (clusters.length > clustersShown) {
    session.io.out(`    and ${clusters.length - clustersShown} more (starling get clusters)\n`);
  }
}
