import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { contextPath, readContexts, writeContexts } from "#cli/contexts.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/failure.ts";
import { serialise } from "#cli/format/serialise.ts";
import type { Session } from "#cli/session.ts";
import { addFleet, startStack, writeAccessFiles } from "#local/stack.ts";
import { adoptRepository } from "#local/user-repository.ts";
import { errorMessage } from "#shared/errors.ts";

const CONTEXT = "local";
const NAMESPACE = "default";
const START_SECONDS = 60;
const STOP_SECONDS = 20;
const POLL_MS = 100;
const MAX_CLUSTERS = 300;
const LOG_LINES_SHOWN = 10;

/** What a running machine says of itself; the file is there while it runs. */
interface MachineFile {
  readonly pid: number;
  readonly startedAt: string;
  readonly clusters: number;
  readonly endpoint: string;
  readonly kubeconfig: string;
  /** Context file with the endpoint and its key. */
  readonly access: string;
  /** Where the repository given with `--repo` is served, and the authority of that address. */
  readonly repository?: { readonly url: string; readonly ca: string };
}

export interface LocalUpOptions {
  readonly clusters: number;
  readonly repo?: string;
}

/** Starts Starling on this machine in the background, and makes it the current context. */
export async function localUp(session: Session, options: LocalUpOptions): Promise<ExitReason> {
  if (options.clusters > MAX_CLUSTERS) {
    throw usageFailure(`--clusters is ${options.clusters}; at most ${MAX_CLUSTERS}`, "starling local up --clusters 12");
  }
  const folder = stateFolder(session);
  const running = readMachine(folder);
  if (running !== undefined) {
    session.note("it is up already");
    adoptContext(session, running);
    printMachine(session, running);
    return "done";
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  session.note(`starting Starling with ${options.clusters} clusters on this machine`);
  const machine = await startInBackground(session, folder, options);
  adoptContext(session, machine);
  printMachine(session, machine);
  session.note(`context ${CONTEXT} is current in ${contextPath(session.io)}`);
  if (machine.repository !== undefined) {
    const push = `GIT_SSL_CAINFO=${machine.repository.ca} git push ${machine.repository.url}`;
    session.note(`repository ${machine.repository.url}\n  push to it: ${push}`);
  }
  session.note(`  next: starling get clusters\n        export KUBECONFIG=${machine.kubeconfig}`);
  return "done";
}

/** Stops it; everything it held in memory is gone, and so is the context. */
export async function localDown(session: Session): Promise<ExitReason> {
  const folder = stateFolder(session);
  const running = readMachine(folder);
  forgetContext(session);
  if (running === undefined) {
    session.io.out("local is down\n");
    return "done";
  }
  process.kill(running.pid, "SIGTERM");
  const deadline = Date.now() + STOP_SECONDS * 1000;
  while (isRunning(running.pid)) {
    if (Date.now() > deadline) {
      throw new CliFailure(`process ${running.pid} does not end`, { exit: "no", next: `kill -9 ${running.pid}` });
    }
    await session.pause(POLL_MS);
  }
  rmSync(machineFile(folder), { force: true });
  session.io.out("local is down\n");
  return "done";
}

export async function localStatus(session: Session): Promise<ExitReason> {
  const running = readMachine(stateFolder(session));
  if (running !== undefined) {
    printMachine(session, running);
    return "done";
  }
  session.io.out("local is down\n");
  session.note("  next: starling local up");
  return "no";
}

export interface LocalServeOptions extends LocalUpOptions {
  readonly folder: string;
}

/** What `up` runs in the background: the machine itself, until it is told to end. */
export async function localServe(session: Session, options: LocalServeOptions): Promise<ExitReason> {
  const { folder } = options;
  const repositories = join(folder, "repositories");
  rmSync(repositories, { recursive: true, force: true });
  const stack = await startStack({ repositories });
  try {
    await addFleet(stack, options.clusters);
    const files = await writeAccessFiles(stack, folder, NAMESPACE);
    const repository =
      options.repo === undefined ? undefined : await adoptRepository(stack.git, { repo: options.repo });
    const ca = join(folder, "git-ca.pem");
    writeFileSync(ca, stack.machine.environment.gitCa ?? "");
    writeMachine(folder, {
      pid: process.pid,
      startedAt: session.io.now().toISOString(),
      clusters: options.clusters,
      endpoint: stack.machine.api.endpoint,
      kubeconfig: files.kubeconfig,
      access: files.context,
      ...(repository === undefined ? {} : { repository: { url: repository.url, ca } }),
    });
    await aborted(session.io.interrupted);
  } finally {
    rmSync(machineFile(folder), { force: true });
    await stack.stop();
  }
  return "done";
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((end) => {
    // A listener keeps no process alive; the sockets of the machine do.
    if (signal.aborted) end();
    else signal.addEventListener("abort", () => end(), { once: true });
  });
}

async function startInBackground(session: Session, folder: string, options: LocalUpOptions): Promise<MachineFile> {
  const logFile = join(folder, "log");
  const log = openSync(logFile, "w");
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const repo = options.repo === undefined ? [] : ["--repo", repositoryArgument(session, options.repo)];
  const child = spawn(
    process.execPath,
    [main, "local", "serve", "--folder", folder, "--clusters", String(options.clusters), ...repo],
    { detached: true, stdio: ["ignore", log, log], cwd: folder },
  );
  closeSync(log);
  let ended = false;
  child.on("exit", () => {
    ended = true;
  });
  child.unref();
  const deadline = Date.now() + START_SECONDS * 1000;
  try {
    for (;;) {
      const machine = readMachine(folder);
      if (machine !== undefined) return machine;
      if (ended || Date.now() > deadline) {
        const lines = readFileSync(logFile, "utf8").trim().split("\n").slice(-LOG_LINES_SHOWN);
        throw new CliFailure("it did not start", { exit: "unknown", lines, next: `less ${logFile}` });
      }
      await session.pause(POLL_MS);
    }
  } catch (error) {
    if (!ended) child.kill("SIGTERM");
    throw error;
  }
}

function repositoryArgument(session: Session, repo: string): string {
  return /^https:\/\//.test(repo) ? repo : resolve(session.io.cwd, repo);
}

function stateFolder(session: Session): string {
  const { XDG_STATE_HOME, HOME } = session.io.env;
  return join(XDG_STATE_HOME ?? join(HOME ?? ".", ".local", "state"), "starling", "local");
}

function machineFile(folder: string): string {
  return join(folder, "machine.json");
}

/** @returns undefined when none runs; the file of one that died says nothing. */
function readMachine(folder: string): MachineFile | undefined {
  const path = machineFile(folder);
  if (!existsSync(path)) return undefined;
  try {
    const machine = JSON.parse(readFileSync(path, "utf8")) as MachineFile;
    return isRunning(machine.pid) ? machine : undefined;
  } catch (error) {
    throw new CliFailure(`cannot read ${path}: ${errorMessage(error)}`, { exit: "unknown", next: `rm ${path}` });
  }
}

function writeMachine(folder: string, machine: MachineFile): void {
  const path = machineFile(folder);
  writeFileSync(`${path}.new`, `${JSON.stringify(machine, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Process ids come again: where the system says what a process runs, it has to be ours. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const commandLine = `/proc/${pid}/cmdline`;
  return !existsSync(commandLine) || readFileSync(commandLine, "utf8").includes("local\0serve");
}

function adoptContext(session: Session, machine: MachineFile): void {
  const given = readContexts({ env: { STARLING_CONFIG: machine.access } }).contexts[CONTEXT];
  if (given === undefined) throw new CliFailure(`${machine.access} has no context`, { exit: "unknown" });
  const file = readContexts(session.io);
  writeContexts(session.io, { contexts: { ...file.contexts, [CONTEXT]: given }, current: CONTEXT });
}

function forgetContext(session: Session): void {
  const file = readContexts(session.io);
  const { [CONTEXT]: gone, ...contexts } = file.contexts;
  if (gone === undefined) return;
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
