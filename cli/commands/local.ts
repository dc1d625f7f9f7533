import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Context, contextPath, readContexts, writeContexts } from "#cli/contexts.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/failure.ts";
import { objectState } from "#cli/format/object-state.ts";
import { serialise } from "#cli/format/serialise.ts";
import type { Session } from "#cli/session.ts";
import { openApiSession } from "#local/api-session.ts";
import { holderOf, isServing, type MachineFile, readMachine } from "#local/machine-file.ts";
import type { ApiList, ClusterObject, SyncGroupObject } from "#shared/domain/api/objects.ts";
import { errorMessage } from "#shared/errors.ts";

const CONTEXT = "local";
const START_SECONDS = 60;
const STOP_SECONDS = 30;
const POLL_MS = 100;
const MAX_CLUSTERS = 300;
const MAX_PORT = 65_535;
const LOG_LINES_SHOWN = 10;

export interface LocalOptions {
  /** Folder that everything is kept in. */
  readonly state?: string;
}

export interface LocalUpOptions extends LocalOptions {
  readonly clusters?: number;
  readonly port?: number;
  readonly repo?: string;
}

/** Starts Starling on this machine in the background, and makes it the current context. */
export async function localUp(session: Session, options: LocalUpOptions): Promise<ExitReason> {
  refuseOutOfRange(options);
  const folder = stateFolder(session, options);
  const running = machineIn(folder);
  if (running !== undefined) {
    const { clusters } = options;
    if (clusters !== undefined && clusters !== running.clusters) {
      const next = "starling local up --state DIR";
      throw usageFailure(`--clusters is ${clusters}, and what is up in ${folder} has ${running.clusters}`, next);
    }
    session.note("it is up already");
    adoptContext(session, running);
    printMachine(session, running);
    return "done";
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  session.note(`starting Starling on this machine; its state is in ${folder}`);
  const machine = await startInBackground(session, folder, options);
  adoptContext(session, machine);
  printMachine(session, machine);
  session.note(`context ${CONTEXT} is current in ${contextPath(session.io)}`);
  if (machine.repository !== undefined) {
    const push = `GIT_SSL_CAINFO=${quoted(machine.repository.ca)} git push ${machine.repository.url}`;
    session.note(`repository ${machine.repository.url}\n  push to it: ${push}`);
  }
  session.note(`  next: starling get clusters\n        export KUBECONFIG=${quoted(machine.kubeconfig)}`);
  return "done";
}

/** Stops it, and waits until it is gone. Its state stays for the next `up`. */
export async function localDown(session: Session, options: LocalOptions): Promise<ExitReason> {
  const folder = stateFolder(session, options);
  forgetContext(session, machineIn(folder));
  const pid = holderOf(folder);
  if (pid === undefined) {
    session.io.out("local is down\n");
    return "done";
  }
  process.kill(pid, "SIGTERM");
  const deadline = Date.now() + STOP_SECONDS * 1000;
  while (isServing(pid)) {
    if (Date.now() > deadline) {
      throw new CliFailure(`process ${pid} does not end`, { exit: "no", next: `kill -9 ${pid}` });
    }
    await session.pause(POLL_MS);
  }
  session.io.out("local is down\n");
  session.note(`  next: starling local up          its state is in ${folder}`);
  return "done";
}

/** What runs, where, and what its clusters and groups show. */
export async function localStatus(session: Session, options: LocalOptions): Promise<ExitReason> {
  const folder = stateFolder(session, options);
  const machine = machineIn(folder);
  if (machine === undefined) {
    const holder = holderOf(folder);
    session.io.out(holder === undefined ? "local is down\n" : `local is starting: process ${holder}\n`);
    session.note("  next: starling local up");
    return "no";
  }
  const shown = await whatItShows(machine);
  const { output } = session.options;
  if (output === "json" || output === "yaml") {
    session.io.out(serialise({ ...machine, ...shown }, output));
    return "done";
  }
  printMachine(session, machine);
  session.io.out(`  state:       ${machine.folder}\n  log:         ${logFile(machine.folder)}\n`);
  const states = Object.entries(shown.clusterStates).map(([word, count]) => `${count} ${word}`);
  session.io.out(`  clusters:    ${states.join(", ")}\n`);
  for (const group of shown.groups) {
    session.io.out(`  syncgroup:   ${group.name}  ${group.state}  ${group.ready}  ${group.revision}\n`);
  }
  return "done";
}

interface Shown {
  readonly clusterStates: Readonly<Record<string, number>>;
  readonly groups: readonly {
    readonly name: string;
    readonly state: string;
    readonly ready: string;
    readonly revision: string;
  }[];
}

async function whatItShows(machine: MachineFile): Promise<Shown> {
  const { endpoint, region, credentials } = contextOf(machine);
  if (credentials === undefined || !("accessKeyId" in credentials)) {
    throw new CliFailure(`${machine.access} has no keys`, { exit: "unknown", next: "starling local down" });
  }
  const api = openApiSession({ endpoint, region, credentials });
  try {
    const clusters = await api.call<ApiList<ClusterObject>>("GET", `/v1/clusters?limit=${MAX_CLUSTERS}`);
    const groups = await api.call<ApiList<SyncGroupObject>>("GET", "/v1/syncgroups?limit=100");
    const clusterStates: Record<string, number> = {};
    for (const cluster of clusters.items) {
      const { word } = objectState(cluster);
      clusterStates[word] = (clusterStates[word] ?? 0) + 1;
    }
    return {
      clusterStates,
      groups: groups.items.map((group) => ({
        name: `${group.metadata.namespace}/${group.metadata.name}`,
        state: objectState(group).word,
        ready: `${group.status.clusters?.ready ?? 0}/${group.status.clusters?.selected ?? 0}`,
        revision: group.status.revision ?? "-",
      })),
    };
  } catch (error) {
    const message = `process ${machine.pid} runs, but ${machine.endpoint} does not answer: ${errorMessage(error)}`;
    throw new CliFailure(message, { exit: "unknown", next: "starling local down" });
  }
}

export interface LocalServeOptions extends LocalUpOptions {
  readonly folder: string;
}

/** What `up` runs in the background: the machine itself, until it is told to end. */
export async function localServe(session: Session, options: LocalServeOptions): Promise<ExitReason> {
  const { serveLocal } = await import("#local/up.ts");
  await serveLocal({ ...options, signal: session.io.interrupted });
  return "done";
}

function refuseOutOfRange({ clusters = 1, port = 1 }: LocalUpOptions): void {
  if (clusters > MAX_CLUSTERS) {
    throw usageFailure(`--clusters is ${clusters}; at most ${MAX_CLUSTERS}`, "starling local up --clusters 12");
  }
  if (port > MAX_PORT) throw usageFailure(`--port is ${port}; at most ${MAX_PORT}`, "starling local up --port 8080");
}

async function startInBackground(session: Session, folder: string, options: LocalUpOptions): Promise<MachineFile> {
  const log = openSync(logFile(folder), "w", 0o600);
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const { clusters, port, repo } = options;
  const given = [
    ...(clusters === undefined ? [] : ["--clusters", String(clusters)]),
    ...(port === undefined ? [] : ["--port", String(port)]),
    ...(repo === undefined ? [] : ["--repo", repositoryArgument(session, repo)]),
  ];
  const child = spawn(process.execPath, [main, "local", "serve", "--folder", folder, ...given], {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: folder,
  });
  closeSync(log);
  let ended = false;
  child.on("exit", () => {
    ended = true;
  });
  child.unref();
  const deadline = Date.now() + START_SECONDS * 1000;
  try {
    for (;;) {
      const machine = machineIn(folder);
      if (machine !== undefined) return machine;
      if (ended || Date.now() > deadline) throw didNotStart(folder, ended);
      await session.pause(POLL_MS);
    }
  } catch (error) {
    if (!ended) child.kill("SIGTERM");
    throw error;
  }
}

function didNotStart(folder: string, ended: boolean): CliFailure {
  const lines = readFileSync(logFile(folder), "utf8").trim().split("\n").slice(-LOG_LINES_SHOWN);
  const message = ended ? "it did not start" : `it was not ready in ${START_SECONDS} seconds`;
  return new CliFailure(message, { exit: "unknown", lines, next: `less ${quoted(logFile(folder))}` });
}

function repositoryArgument(session: Session, repo: string): string {
  return /^https:\/\//.test(repo) ? repo : resolve(session.io.cwd, repo);
}

function logFile(folder: string): string {
  return join(folder, "log");
}

function stateFolder(session: Session, { state }: LocalOptions): string {
  if (state !== undefined) return resolve(session.io.cwd, state);
  const { XDG_STATE_HOME, HOME } = session.io.env;
  return join(XDG_STATE_HOME ?? join(HOME ?? ".", ".local", "state"), "starling", "local");
}

function machineIn(folder: string): MachineFile | undefined {
  try {
    return readMachine(folder);
  } catch (error) {
    const path = join(folder, "machine.json");
    throw new CliFailure(`cannot read ${path}: ${errorMessage(error)}`, { exit: "unknown", next: `rm ${path}` });
  }
}

function contextOf(machine: MachineFile): Context {
  const given = readContexts({ env: { STARLING_CONFIG: machine.access } }).contexts[CONTEXT];
  if (given === undefined) throw new CliFailure(`${machine.access} has no context`, { exit: "unknown" });
  return given;
}

function adoptContext(session: Session, machine: MachineFile): void {
  const file = readContexts(session.io);
  const contexts = { ...file.contexts, [CONTEXT]: contextOf(machine) };
  writeContexts(session.io, { contexts, current: CONTEXT });
}

/** Only when it is the context of this machine: another one may be up with its state elsewhere. */
function forgetContext(session: Session, machine: MachineFile | undefined): void {
  const file = readContexts(session.io);
  const { [CONTEXT]: gone, ...contexts } = file.contexts;
  if (gone === undefined || (machine !== undefined && gone.endpoint !== machine.endpoint)) return;
  const { current, ...rest } = file;
  const kept = current === undefined || current === CONTEXT ? {} : { current };
  writeContexts(session.io, { ...rest, contexts, ...kept });
}

function printMachine(session: Session, machine: MachineFile): void {
  const { output } = session.options;
  if (output === "json" || output === "yaml") {
    session.io.out(serialise(machine, output));
    return;
  }
  session.io.out(`local is up: ${machine.endpoint}, ${machine.clusters} clusters, process ${machine.pid}\n`);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
