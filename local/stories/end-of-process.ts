/** Everything that tells a process in the foreground to end: signals, a reader that left, a parent that died. */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { constants } from "node:os";

export interface EndOfProcess {
  readonly signal: AbortSignal;
  /** The exit code that says why: 128 and the number of the signal. Pending until the process is told to end. */
  readonly code: Promise<number>;
}

const lookAtParentEveryMs = 500;

/**
 * Signals no longer end the process from here on, and neither does a second Ctrl-C: the caller ends it, in order. A
 * parent killed with SIGKILL sends no signal; that this process has another parent then is how it shows.
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
  // `| head -1`: nobody reads on.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => end(128 + constants.signals.SIGPIPE));
  }
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) end(128 + constants.signals.SIGHUP);
  }, lookAtParentEveryMs).unref();
  return { signal: controller.signal, code: promise };
}

/**
 * Removes a folder when this process ends, however it ends: a shell beside it waits for the end of its standard input,
 * which the kernel closes even after SIGKILL. Needs a POSIX `sh`.
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
