/**
 * Detects every reason to end a process in the foreground: signals, a reader that has closed the output, a dead parent.
 */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { constants } from "node:os";

export interface EndOfProcess {
  readonly signal: AbortSignal;
  /** Resolves with the exit code for the reason: 128 and the number of the signal. */
  readonly code: Promise<number>;
}

const checkParentEveryMs = 500;

/**
 * From this call on, signals no longer end the process, and neither does a second Ctrl-C. The caller ends the process
 * in order. A parent killed with SIGKILL sends no signal, so this also watches for a change of the parent.
 */
export function untilEnded(): EndOfProcess {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (code: number) => {
    controller.abort();
    resolve(code);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => end(128 + constants.signals[name]));
  }
  // The reader of a pipe such as `| head -1` has closed it.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => end(128 + constants.signals.SIGPIPE));
  }
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) end(128 + constants.signals.SIGHUP);
  }, checkParentEveryMs).unref();
  return { signal: controller.signal, code: promise };
}

/**
 * Removes a folder when this process ends, however it ends. A shell beside it waits for the end of its standard input,
 * which the kernel closes even after SIGKILL. It needs a POSIX `sh`.
 */
export function removeAtEnd(folder: string): void {
  const child = spawn("sh", ["-c", 'read -r _; rm -rf -- "$0"', folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.on("error", () => {});
  child.unref();
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}
