import { askMachine, type LocalOptions, runningMachine, stateFlag, stateFolder } from "#cli/commands/local-folder.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import type { ControlCall, ListedFaults } from "#local/serve/control-server.ts";
import { defined } from "#shared/base/defined.ts";

const maxSeed = 2 ** 32 - 1;

export interface FaultsSetOptions extends LocalOptions {
  readonly seed?: string;
}

/** Lists the targets that have faults, and AWS. `-o json` lists all targets. */
export async function localFaults(session: Session, options: LocalOptions): Promise<ExitReason> {
  const all = await call(session, options, { method: "GET" });
  print(session, { all, shown: all.filter(({ target, settings }) => target === "aws" || settings.length > 0) });
  return "done";
}

/** `set aws hostile`, `set clusters/canary-1 latency=500ms`: the settings are added to the existing ones. */
export async function localFaultsSet(
  session: Session,
  [target = "", ...settings]: readonly string[],
  options: FaultsSetOptions,
): Promise<ExitReason> {
  const seed = seedOf(options);
  const change = { target, settings, ...defined({ seed }) };
  const changed = await call(session, options, { method: "POST", change });
  print(session, { all: changed, shown: changed });
  const flag = stateFlag(session, stateFolder(session, options));
  session.note(`  next: starling local faults clear ${target}${flag}   (ends the faults)`);
  return "done";
}

/** Ends the faults of one target, or of all. */
export async function localFaultsClear(
  session: Session,
  target: string | undefined,
  options: LocalOptions,
): Promise<ExitReason> {
  const cleared = await call(session, options, { method: "DELETE", target });
  print(session, { all: cleared, shown: cleared.slice(0, 1) });
  return "done";
}

function call(session: Session, options: LocalOptions, what: ControlCall): Promise<readonly ListedFaults[]> {
  return askMachine(session, runningMachine(session, stateFolder(session, options)), what);
}

function seedOf({ seed }: FaultsSetOptions): number | undefined {
  if (seed === undefined) return undefined;
  const number = Number(seed);
  if (/^\d+$/.test(seed) && number <= maxSeed) return number;
  throw usageFailure(
    `--seed is "${seed}"; expected a whole number from 0 to ${maxSeed}`,
    "starling local faults set aws hostile --seed 7",
  );
}

interface Printed {
  readonly all: readonly ListedFaults[];
  /** The targets that the table shows. */
  readonly shown: readonly ListedFaults[];
}

function print(session: Session, { all, shown }: Printed): void {
  const { output, headers } = session.options;
  if (isData(output)) {
    const items = all.map((faults) => ({ kind: "Faults", ...faults }));
    session.io.out(serialise({ kind: "FaultsList", metadata: {}, items }, output));
    return;
  }
  if (output === "name") {
    session.io.out(shown.map(({ target }) => `${target}\n`).join(""));
    return;
  }
  const rows = shown.map(({ target, seed, settings, injected }) => [
    target,
    String(seed),
    injected === undefined ? "-" : String(total(Object.values(injected))),
    settings.length === 0 ? "none" : settings.join(" "),
  ]);
  const columns = ["TARGET", "SEED", "INJECTED", "FAULTS"];
  session.io.out(formatTable({ columns, rows }, { headers: headers === false ? "hide" : "show" }));
  const quiet = all.length - shown.length;
  if (quiet > 0) session.note(`${quiet} ${quiet === 1 ? "cluster" : "clusters"} without faults`);
}

function total(counts: readonly number[]): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}
