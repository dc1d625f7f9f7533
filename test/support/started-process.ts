import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export interface StartedProcess {
  readonly child: ChildProcess;
  /** The output so far. */
  out(): string;
  err(): string;
  /**
   * Resolves when what it printed matches, on stdout unless `of` says otherwise; within three minutes by default.
   * @throws Error with what it printed when it ends or the time is up before.
   */
  until(pattern: RegExp, options?: { readonly of?: "out" | "err"; readonly timeoutMs?: number }): Promise<void>;
  /** Its exit code, or the name of the signal, when it has ended and all that it printed was read. */
  ended(): Promise<number | string>;
}

export interface ProcessOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** On its stdin; nothing is there to be read by default. */
  readonly input?: string;
  /** The one that runs the tests by default. */
  readonly node?: string;
}

/** Starts `node` with these arguments. */
export function startNode(args: readonly string[], options: ProcessOptions): StartedProcess {
  const { cwd, env, input, node = process.execPath } = options;
  const child = spawn(node, args, { cwd, env: { ...env }, stdio: ["pipe", "pipe", "pipe"] });
  // It may end before it has read anything.
  child.stdin.on("error", () => {});
  child.stdin.end(input ?? "");
  const printed = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    printed.out += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    printed.err += chunk;
  });
  const closed = once(child, "close");
  return {
    child,
    out: () => printed.out,
    err: () => printed.err,
    until: (pattern, { of = "out", timeoutMs = 180_000 } = {}) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new Error(`${why} before ${pattern}:\n${printed.out}${printed.err}`));
        const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs);
        const search = () => {
          if (!pattern.test(printed[of])) return;
          clearTimeout(timer);
          resolve();
        };
        (of === "out" ? child.stdout : child.stderr).on("data", search);
        child.on("close", (code, signal) => {
          clearTimeout(timer);
          fail(`it ended with ${code ?? signal}`);
        });
        search();
      }),
    async ended() {
      const [code, signal] = await closed;
      return code ?? signal;
    },
  };
}

/** The output of an ended process, and its exit code or the name of its signal. */
export interface Ran {
  readonly code: number | string;
  readonly out: string;
  readonly err: string;
}

export async function ranTo(started: StartedProcess): Promise<Ran> {
  const code = await started.ended();
  return { code, out: started.out(), err: started.err() };
}
