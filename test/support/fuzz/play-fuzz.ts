import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { FuzzReport } from "#test/support/fuzz/fuzz-child.ts";

interface FuzzPlan {
  readonly seed: number;
  readonly inputs: number;
  /** How long the process may be silent. */
  readonly silenceMs?: number;
  /** `faulty`: those that show what is found. */
  readonly parsers?: "real" | "faulty";
}

/** An input that takes longer never ends: a machine that is busy is slow, but goes on. */
const usualSilenceMs = 60_000;
/** The process itself has a hundred of them. */
const mostMiB = 600;
const program = fileURLToPath(new URL("fuzz-child.ts", import.meta.url));

/** Tries one parser, in a process of its own, which may hang. @returns what is wrong, as lines. */
export async function playFuzz(parser: string, plan: FuzzPlan): Promise<readonly string[]> {
  const { seed, inputs, silenceMs = usualSilenceMs, parsers = "real" } = plan;
  const child = fork(program, [parser, `${seed}`, `${inputs}`, parsers], {
    execArgv: ["--max-old-space-size=400"],
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  let report: FuzzReport | undefined;
  let input = -1;
  let complaint = "";
  child.stderr?.on("data", (piece: Buffer) => {
    complaint = `${complaint}${piece}`.slice(-2000);
  });
  let timer = setTimeout(() => child.kill("SIGKILL"), silenceMs);
  child.on("message", (message: number | FuzzReport) => {
    clearTimeout(timer);
    timer = setTimeout(() => child.kill("SIGKILL"), silenceMs);
    if (typeof message === "number") input = message;
    else report = message;
  });
  const [code, signal] = await once(child, "exit");
  clearTimeout(timer);
  if (report === undefined)
    return [`${parser}: seed ${seed}, input ${input}: the process ended (${signal ?? code}) ${complaint}`];
  const { faults, peakMiB } = report;
  return [
    ...faults.map((fault) => `${parser}: seed ${seed}, input ${fault.input}: ${fault.message}\nbase64: ${fault.bytes}`),
    ...(peakMiB > mostMiB ? [`${parser}: seed ${seed}: the process took ${peakMiB} MiB; ${mostMiB} are allowed`] : []),
  ];
}
