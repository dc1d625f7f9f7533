import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export interface TetheredProcess {
  /** Undefined while the program runs; afterwards the reason why it ended and its last output. */
  exit(): string | undefined;
  /** The last output of the program. */
  output(): string;
  stop(): Promise<void>;
  /** Kills the program without time to finish. */
  kill(): Promise<void>;
}

export interface TetheredOptions {
  readonly command: string;
  readonly args: readonly string[];
}

const keptOutputChars = 4096;
const killAfterMs = 5000;

/**
 * The child runs in its own process group, so Ctrl-C in the terminal does not reach it before its parent is done with
 * it. A shell beside it waits for the end of its standard input. The kernel closes this input when the parent ends for
 * any reason, even SIGKILL, and then the shell ends the child.
 */
const tether = [
  "exec 3<&0",
  '"$0" "$@" </dev/null 3<&- & child=$!',
  '(read -r _ <&3; kill "$child") 2>/dev/null & watch=$!',
  "exec 3<&-",
  'wait "$child"; status=$?',
  'kill "$watch" 2>/dev/null',
  "exit $status",
].join("\n");

/** Starts a program that ends with this process, however this process ends. It needs a POSIX `sh`. */
export function startTethered({ command, args }: TetheredOptions): TetheredProcess {
  const child = spawn("sh", ["-c", tether, command, ...args], { detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const output = keepOutput(child);
  let ended: string | undefined;
  child.on("error", (error) => {
    ended = `${command} did not start: ${error.message}`;
  });
  child.on("exit", (code, signal) => {
    ended = `${command} ended with ${signal ?? `exit code ${code}`}${output.text === "" ? "" : `: ${output.text.trim()}`}`;
  });
  child.stdin?.on("error", () => {});
  child.unref();

  return {
    exit: () => ended,
    output: () => output.text,
    async stop() {
      if (ended !== undefined) return;
      const exited = once(child, "exit");
      child.stdin?.end();
      const kill = setTimeout(() => killGroup(child), killAfterMs);
      await exited;
      clearTimeout(kill);
    },
    async kill() {
      if (ended !== undefined) return;
      const exited = once(child, "exit");
      killGroup(child);
      await exited;
    },
  };
}

function keepOutput(child: ChildProcess): { text: string } {
  const kept = { text: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8");
    stream?.on("data", (chunk: string) => {
      kept.text = (kept.text + chunk).slice(-keptOutputChars);
    });
  }
  return kept;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
