import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { AwsClientOptions } from "#shared/lambda/aws-clients.ts";
import { connectionsTo, descriptorsOf } from "#test/support/processes.ts";
import type { FromSandbox, ToSandbox } from "#test/support/sandbox-program.ts";

export interface LimitedSandboxOptions {
  /** The limit of open file descriptors; Lambda allows 1,024. */
  readonly descriptors: number;
  /** The environment of the apply function. */
  readonly environment: Readonly<Record<string, string>>;
  readonly aws: AwsClientOptions;
}

/** The apply function in its own process with a limited number of file descriptors; on Linux only. */
export interface LimitedSandbox {
  /** Invokes the function once for the cluster. @returns the number of messages that return to the queue. */
  invoke(cluster: string): Promise<number>;
  /** Uses up all descriptors, or releases them again. */
  setHoarding(hoarding: "on" | "off"): Promise<void>;
  /** The number of open descriptors, sockets included. */
  descriptors(): number;
  /** The number of connections to a port of this machine. */
  connectionsTo(port: number): number;
  /** @throws Error when the process has ended before. */
  stop(): Promise<void>;
}

const program = fileURLToPath(new URL("sandbox-program.ts", import.meta.url));

export async function startLimitedSandbox(options: LimitedSandboxOptions): Promise<LimitedSandbox> {
  const { descriptors, environment, aws } = options;
  const child = spawn("/bin/sh", ["-c", `ulimit -n ${descriptors} && exec "$0" "$@"`, process.execPath, program], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, POWERTOOLS_LOG_LEVEL: "SILENT" },
  });
  const exited = once(child, "exit");
  const { pid } = child;
  if (pid === undefined) throw new Error("the sandbox did not start");
  const ended = exited.then(([code, signal]) => Promise.reject(new Error(`the sandbox ended with ${code ?? signal}`)));
  ended.catch(() => {});
  async function ask(message: ToSandbox): Promise<number> {
    const answered = once(child, "message");
    child.send(message);
    const [{ returned }] = (await Promise.race([answered, ended])) as [FromSandbox];
    return returned;
  }
  await ask({ kind: "wire", environment, aws });
  return {
    invoke: (cluster) => ask({ kind: "invoke", cluster }),
    setHoarding: async (hoarding) => {
      await ask({ kind: hoarding === "on" ? "hoard" : "release" });
    },
    descriptors: () => descriptorsOf(pid),
    connectionsTo: (port) => connectionsTo(pid, port),
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
