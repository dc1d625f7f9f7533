import { spawn } from "node:child_process";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

/** A program that processes content of a repository. */
export interface ConfinedProcess {
  readonly program: string;
  readonly args: readonly string[];
  /** An empty folder. */
  readonly cwd: string;
  /** Its complete environment: no credentials, no home, no search path. */
  readonly env: Readonly<Record<string, string>>;
  readonly bounds: ProcessBounds;
  /** The name in messages: `kustomize`. */
  readonly name: string;
  /** The remedy for the author of the content when the program exceeds a limit. */
  readonly remedy: string;
  /** The code of the error when the program is stopped. */
  readonly code: ErrorCode;
}

export interface ProcessBounds {
  readonly timeoutSeconds: number;
  readonly maxOutputBytes: number;
  /**
   * The limit of the memory that the child writes to. Its address space would be useless as a measure: Go reserves
   * about 1.5 GB of it and uses 50 MB. The limit is less than half of the function's memory, which also holds the
   * artifact and the output.
   */
  readonly maxMemoryBytes: number;
}

export interface ProcessEnd {
  readonly output: string;
  /** The beginning and the end of its error output. */
  readonly errors: string;
  readonly status: number | null;
  readonly signal: string | null;
}

const mebibyte = 1024 ** 2;

export const defaultBounds: ProcessBounds = {
  timeoutSeconds: 60,
  maxOutputBytes: 64 * mebibyte,
  maxMemoryBytes: 768 * mebibyte,
};

/** The most text of a program that is shown. */
export const maxErrorLength = 2000;

/**
 * Runs the program to its end within limits of time, memory and output. Its process group ends with it.
 * @throws StarlingError with the given code: `permanent` for too much output, `transient` for too much time.
 */
export function runConfined(child: ConfinedProcess): Promise<ProcessEnd> {
  const { program, args, cwd, env, bounds, name, remedy } = child;
  const { timeoutSeconds, maxOutputBytes, maxMemoryBytes } = bounds;
  const failed = (message: string, retry: "transient" | "permanent") =>
    new StarlingError(message, { code: child.code, retry });
  const limit = `ulimit -d ${Math.floor(maxMemoryBytes / 1024)} && exec "$0" "$@"`;
  const started = spawn("/bin/sh", ["-c", limit, program, ...args], {
    cwd,
    // Go then collects garbage before the limit is reached, and not only at twice the memory in use.
    env: { ...env, GOMEMLIMIT: `${Math.floor((maxMemoryBytes / mebibyte) * 0.8)}MiB` },
    // Its own process group, so that everything that it started ends with it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new Promise((resolve, reject) => {
    const output: Buffer[] = [];
    let size = 0;
    let errors = "";
    let last = "";
    let stopped: StarlingError | undefined;
    const stop = (reason: StarlingError): void => {
      stopped ??= reason;
      killGroup(started.pid);
    };
    const timer = setTimeout(
      () => stop(failed(`${name} took longer than ${timeoutSeconds} s; ${remedy}`, "transient")),
      timeoutSeconds * 1000,
    );
    started.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutputBytes)
        stop(failed(`${name} wrote more than ${maxOutputBytes} bytes; ${remedy}`, "permanent"));
      else output.push(chunk);
    });
    started.stderr.on("data", (chunk: Buffer) => {
      if (errors.length < maxErrorLength * 4) errors += chunk.toString();
      else last = (last + chunk.toString()).slice(-maxErrorLength * 4);
    });
    started.on("error", (error) => stop(failed(`${name} could not be started: ${error.message}`, "transient")));
    started.on("exit", () => killGroup(started.pid));
    started.on("close", (status, signal) => {
      clearTimeout(timer);
      if (stopped !== undefined) reject(stopped);
      else resolve({ output: Buffer.concat(output).toString(), errors: errors + last, status, signal });
    });
  });
}

/** Kills the child and everything that it started. It does nothing when no process is left. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has already ended.
  }
}

/** Whether Go reported that the memory limit was reached. */
export function ranOutOfMemory({ errors }: ProcessEnd): boolean {
  return /out of memory|cannot allocate memory/.test(errors);
}
