import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface DemoProcess {
  readonly child: ChildProcess;
  /** What it printed so far. */
  out(): string;
  err(): string;
  /** Resolves when its output matches. @throws Error with what it printed when it ends or the time is up before. */
  until(pattern: RegExp, timeoutMs?: number): Promise<void>;
  /** Its exit code, or the name of the signal. */
  ended(): Promise<number | string>;
}

/** `node scripts/run.mjs demo …` in the repository's folder, with a folder of its own for what is temporary. */
export function startDemo(
  args: readonly string[],
  options: { readonly tmp: string; readonly path?: string },
): DemoProcess {
  const child = spawn(process.execPath, ["scripts/run.mjs", "demo", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, INIT_CWD: root, TMPDIR: options.tmp, PATH: options.path ?? process.env.PATH },
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    out += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    err += chunk;
  });
  const closed = once(child, "close");
  return {
    child,
    out: () => out,
    err: () => err,
    until: (pattern, timeoutMs = 180_000) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new Error(`${why} before ${pattern}:\n${out}${err}`));
        const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs);
        const look = () => {
          if (!pattern.test(out)) return;
          clearTimeout(timer);
          resolve();
        };
        child.stdout.on("data", look);
        child.on("close", (code, signal) => {
          clearTimeout(timer);
          fail(`it ended with ${code ?? signal}`);
        });
        look();
      }),
    async ended() {
      const [code, signal] = await closed;
      return code ?? signal;
    },
  };
}
