import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { AwsClientOptions } from "#shared/lambda/aws-clients.ts";
import { connectionsTo, descriptorsOf } from "#test/support/processes.ts";
import type { FromSandbox, ToSandbox } from "#test/support/sandbox-program.ts";

export interface LimitedSandboxOptions {
  /** Lambda gives a sandbox 1,024. */
  readonly descriptors: number;
  /** Of the apply function. */
  readonly environment: Readonly<Record<string, string>>;
  readonly aws: AwsClientOptions;
}

/** The apply function in a process of its own, which has so many descriptors and no more; Linux only. */
export interface LimitedSandbox {
  /** One invocation for the cluster. @returns how many messages went back to the queue. */
  invoke(cluster: string): Promise<number>;
  /** Leaves it no descriptor, or gives it back those. */
  setHoarding(hoarding: "on" | "off"): Promise<void>;
  /** What it has open now, sockets and all else. */
  descriptors(): number;
  /** Its connections to a port of this machine. */
  connectionsTo(port: number): number;
  /** @throws Error when it ended before. */
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
      await ask({ kind: hoarding === "on" ? "hoard" : "let go" });
    },
    descriptors: () => descriptorsOf(pid),
    connectionsTo: (port) => connectionsTo(pid, port),
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
