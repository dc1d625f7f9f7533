import { spawn } from "node:child_process";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

/** A program that works on what a repository says. */
export interface ConfinedProcess {
  readonly program: string;
  readonly args: readonly string[];
  /** An empty folder. */
  readonly cwd: string;
  /** All that it sees: no credentials, no home, no search path. */
  readonly env: Readonly<Record<string, string>>;
  readonly bounds: ProcessBounds;
  /** As messages have it: `kustomize`. */
  readonly name: string;
  /** Whoever wrote what it works on: what to do where it takes too much. */
  readonly remedy: string;
  /** Of what it is stopped for. */
  readonly code: ErrorCode;
}

export interface ProcessBounds {
  readonly timeoutSeconds: number;
  readonly maxOutputBytes: number;
  /**
   * Memory that the child writes to. Its address space would say nothing: Go reserves about 1.5 GB of it and touches 50 MB.
   * Less than half of its function's, which holds the artifact and the output beside it.
   */
  readonly maxMemoryBytes: number;
}

export interface ProcessEnd {
  readonly output: string;
  /** What it said on its way: its first words, and its last. */
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

/** Of what a program said, this much is shown. */
export const maxErrorLength = 2000;

/**
 * Runs it to its end, within bounds on time, memory and output, in a group of processes that ends with it.
 * @throws StarlingError of the given code: `permanent` for too much output, `transient` for too much time.
 */
export function runConfined(child: ConfinedProcess): Promise<ProcessEnd> {
  const { program, args, cwd, env, bounds, name, remedy } = child;
  const { timeoutSeconds, maxOutputBytes, maxMemoryBytes } = bounds;
  const failed = (message: string, retry: "transient" | "permanent") =>
    new StarlingError(message, { code: child.code, retry });
  const limit = `ulimit -d ${Math.floor(maxMemoryBytes / 1024)} && exec "$0" "$@"`;
  const started = spawn("/bin/sh", ["-c", limit, program, ...args], {
    cwd,
    // Collects garbage before the limit is met, and not at twice of what is in use.
    env: { ...env, GOMEMLIMIT: `${Math.floor((maxMemoryBytes / mebibyte) * 0.8)}MiB` },
    // A group of its own: what it may have started ends with it.
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

/** The child and what it started; nothing when all of it is gone, or never was. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is over.
  }
}

/** True of what Go says when the bound on memory was met. */
export function ranOutOfMemory({ errors }: ProcessEnd): boolean {
  return /out of memory|cannot allocate memory/.test(errors);
}
