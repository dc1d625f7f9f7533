import { CommanderError } from "commander";
import { createProgram } from "#cli/program.ts";
import { CliFailure, exitCodes } from "#cli/session/failure.ts";
import { type CliIo, type GuardedIo, guardedIo } from "#cli/session/io.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { plainLine } from "#shared/base/plain-text.ts";

/** Runs one command. @returns its exit code: 0 done, 1 no, 2 wrong input, 3 unknown, 4 timeout, 130 interrupted. */
export async function runCli(argv: readonly string[], io: CliIo): Promise<number> {
  let exit: number = exitCodes.done;
  const guarded = guardedIo(io);
  const program = createProgram(guarded, (code) => {
    exit = code;
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return exit;
  } catch (error) {
    return failed(error, { io: guarded, argv });
  }
}

function failed(error: unknown, { io, argv }: { readonly io: GuardedIo; readonly argv: readonly string[] }): number {
  if (io.interrupted.aborted) {
    io.err("interrupted\n");
    return exitCodes.interrupted;
  }
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.wrongInput;
  if (isTimeout(error)) {
    io.err(
      `error: the time of --timeout is over; nothing was undone\n  next: the same command with a longer --timeout\n`,
    );
    return exitCodes.timeout;
  }
  if (error instanceof CliFailure) {
    for (const line of error.lines) io.err(`${plainLine(line)}\n`);
    io.err(`error: ${error.message}\n`);
    io.err(`  next: ${error.next ?? defaultNext(argv)}\n`);
    return exitCodes[error.exit];
  }
  io.err(`error: ${errorMessage(error)}\n  next: the same command with --debug\n`);
  if (argv.includes("--debug") && error instanceof Error) io.err(`${error.stack}\n`);
  return exitCodes.unknown;
}

/** The errors of an aborted wait: for a timer, a socket, or the answer to a question. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
}

function defaultNext(argv: readonly string[]): string {
  const verb = argv.find((word) => !word.startsWith("-"));
  return verb === undefined ? "starling --help" : `starling ${verb} --help`;
}
