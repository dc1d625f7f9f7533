import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CheckFinding } from "#cli/doctor/checks.ts";
import type { Context } from "#cli/session/contexts.ts";
import { type Machine, type MachineOptions, startMachine } from "#local/machine/machine.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

/** The output of `starling doctor -o json`. */
export interface Diagnosis {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly healthy: boolean;
  /** The names of the checks, in their order. */
  readonly names: readonly string[];
  /** `check: state` of each check that is not ok. */
  readonly ailing: readonly string[];
  finding(check: string): CheckFinding;
}

/** The answer of the API instead of its function. Undefined calls the function. */
export type Answering = (path: string) => { readonly status: number; readonly body: object } | undefined;

export interface DoctorWorld {
  readonly machine: Machine;
  /** @param change - of the context; null means no context. */
  examine(change?: Partial<Context> | null, aheadSeconds?: number): Promise<Diagnosis>;
  /** The output for people. */
  read(change?: Partial<Context>): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
  answer(answering: Answering | undefined): void;
  stop(): Promise<void>;
}

/** A machine whose ticks the test runs, and the command that examines it. */
export async function startDoctorWorld(options: MachineOptions = {}): Promise<DoctorWorld> {
  let answering: Answering | undefined;
  const machine = await startMachine({
    ...options,
    tickEveryMs: "manual",
    sandboxes: (name, wire) => {
      const handler = wire();
      if (name !== "api") return handler;
      return async (event, context) => {
        const scripted = answering?.((event as { readonly rawPath: string }).rawPath);
        return scripted === undefined
          ? handler(event, context)
          : { statusCode: scripted.status, body: JSON.stringify(scripted.body) };
      };
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "starling-doctor-"));
  const config = join(folder, "config.json");

  async function run(line: string, change: Partial<Context> | null, aheadSeconds: number) {
    const { endpoint, region, credentials } = machine.api;
    const here = { endpoint, region, credentials, sts: machine.eks.endpoint, ...change };
    writeFileSync(config, JSON.stringify(change === null ? { contexts: {} } : { contexts: { here }, current: "here" }));
    return runWithoutTerminal(line.split(" "), { folder, aheadSeconds, patienceMs: 60_000 });
  }

  return {
    machine,
    async examine(change = {}, aheadSeconds = 0) {
      const ran = await run("doctor -o json", change, aheadSeconds);
      const report = JSON.parse(ran.out) as { readonly healthy: boolean; readonly checks: readonly CheckFinding[] };
      return {
        ...ran,
        healthy: report.healthy,
        names: report.checks.map(({ check }) => check),
        ailing: report.checks.filter(({ state }) => state !== "ok").map(({ check, state }) => `${check}: ${state}`),
        finding(check) {
          const found = report.checks.find((each) => each.check === check);
          if (found === undefined) throw new Error(`there is no check ${check} in ${ran.out}`);
          return found;
        },
      };
    },
    read: (change = {}) => run("doctor", change, 0),
    answer(next) {
      answering = next;
    },
    async stop() {
      rmSync(folder, { recursive: true, force: true });
      await machine.stop();
    },
  };
}
