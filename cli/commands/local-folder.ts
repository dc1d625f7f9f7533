/** The state folder of the machine in the background, and what the folder says about the machine. */
import { join, resolve } from "node:path";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { type Context, readContexts, writeContexts } from "#cli/session/contexts.ts";
import { CliFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { LocalFailure } from "#local/base/local-failure.ts";
import { type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import { type ControlCall, callControl, type ListedFaults } from "#local/serve/control-server.ts";
import { type MachineFile, readMachine } from "#local/serve/machine-file.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

export const localContext = "local";
export const maxClusters = 300;

export interface LocalOptions {
  /** The state folder. */
  readonly state?: string;
}

export function stateFolder(session: Session, { state }: LocalOptions): string {
  if (state !== undefined) return resolve(session.io.cwd, state);
  const { XDG_STATE_HOME, HOME } = session.io.env;
  return join(XDG_STATE_HOME ?? join(HOME ?? ".", ".local", "state"), "starling", "local");
}

/** ` --state DIR` for the next command to type, when it is not the default. */
export function stateFlag(session: Session, folder: string): string {
  return folder === stateFolder(session, {}) ? "" : ` --state ${quoted(folder)}`;
}

export function logFile(folder: string): string {
  return join(folder, "log");
}

/** The machine that runs in this folder. @throws CliFailure when its file cannot be read. */
export function machineIn(folder: string): MachineFile | undefined {
  try {
    return readMachine(folder);
  } catch (error) {
    const path = join(folder, "machine.json");
    throw new CliFailure(`cannot read ${path}: ${errorMessage(error)}`, {
      exit: "unknown",
      next: `rm ${quoted(path)}`,
    });
  }
}

/** @throws CliFailure when no machine runs in this folder. */
export function runningMachine(session: Session, folder: string): MachineFile {
  const machine = machineIn(folder);
  if (machine !== undefined) return machine;
  throw new CliFailure(`local is down: nothing runs in ${folder}`, {
    exit: "no",
    next: `starling local up${stateFlag(session, folder)}`,
  });
}

function contextOf(session: Session, machine: MachineFile): Context {
  const given = readContexts({ env: { STARLING_CONFIG: machine.access } }).contexts[localContext];
  if (given === undefined) {
    const next = `starling local down${stateFlag(session, machine.folder)}`;
    throw new CliFailure(`${machine.access} has no context`, { exit: "unknown", next });
  }
  return given;
}

/** A session of the machine's own user, independent of the current context. @throws CliFailure when its file has no keys. */
export function machineApi(session: Session, machine: MachineFile): ApiSession {
  const { endpoint, region, credentials } = contextOf(session, machine);
  if (credentials === undefined || !("accessKeyId" in credentials)) {
    const next = `starling local down${stateFlag(session, machine.folder)}`;
    throw new CliFailure(`${machine.access} has no keys`, { exit: "unknown", next });
  }
  return openApiSession({ endpoint, region, credentials });
}

export function adoptContext(session: Session, machine: MachineFile): void {
  const file = readContexts(session.io);
  const contexts = { ...file.contexts, [localContext]: contextOf(session, machine) };
  writeContexts(session.io, { contexts, current: localContext });
}

/** Removes the context of this machine. The context may belong to another machine with another state folder. */
export function forgetContext(session: Session, machine: Pick<MachineFile, "endpoint"> | undefined): void {
  const file = readContexts(session.io);
  const { [localContext]: gone, ...contexts } = file.contexts;
  if (gone === undefined || (machine !== undefined && gone.endpoint !== machine.endpoint)) return;
  const { current, ...rest } = file;
  const kept = current === undefined || current === localContext ? {} : { current };
  writeContexts(session.io, { ...rest, contexts, ...kept });
}

/** The machine for other programs: without the token of its control server. */
export function publicMachine({ control, pages: _pages, ...machine }: MachineFile): object {
  return { ...machine, control: { url: control.url } };
}

/** Prints the first line, or the whole machine as JSON or YAML. */
export function printMachine(session: Session, machine: MachineFile): void {
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise(publicMachine(machine), output));
    return;
  }
  const clusters = `${machine.clusters} ${machine.clusters === 1 ? "cluster" : "clusters"}`;
  session.io.out(`local is up: ${machine.endpoint}, ${clusters}, process ${machine.pid}\n`);
  if (machine.pages !== undefined) session.note(`web pages: ${machine.pages}`);
}

/** Calls a machine's control server. If it refuses, the next command names this machine's state folder. */
export function askMachine(
  session: Session,
  machine: MachineFile,
  call: ControlCall,
): Promise<readonly ListedFaults[]> {
  return withLocalFailures(() => callControl(machine.control, call), stateFlag(session, machine.folder));
}

/**
 * Runs an action of `local`, and turns its failures into failures of the command.
 * @param flag - added to the next command of a failure.
 */
export async function withLocalFailures<Result>(action: () => Result | Promise<Result>, flag = ""): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof LocalFailure)
      throw new CliFailure(error.message, { exit: error.exit, next: `${error.next}${flag}` });
    throw error;
  }
}
