import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { openDynamoPipe } from "#local/aws/services/dynamo-pipe.ts";
import { createEmulatorClient } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";
import { freePort } from "#local/base/free-port.ts";
import { LocalFailure } from "#local/base/local-failure.ts";
import { startTethered } from "#local/base/tethered-process.ts";

export interface DynamoServer {
  /** Sends a request to DynamoDB without a check of its signature. */
  readonly send: Forward;
  /** `http://127.0.0.1:<port>`; undefined without a port. */
  readonly endpoint?: string;
  /** The process id; set if the server has no port. */
  readonly pid?: number | undefined;
  stop(): Promise<void>;
}

export interface DynamoServerOptions {
  /** The folder for the database file. The default keeps tables in memory. */
  readonly stateDir?: string;
  readonly port?: number;
  /**
   * `pipe` opens no port, because every user of the machine could use it. It does not report capacity. The default is
   * `port`.
   */
  readonly transport?: "port" | "pipe";
}

const startAttempts = 3;
const answerWithinMs = 15_000;
const probeEveryMs = 25;
const probeTimeoutMs = 500;

/**
 * DynamoDB on this machine: the binary of the npm package `@dynoxide/<platform>-<arch>`, or else `dynoxide` on the
 * PATH. Resolves when the server answers. The process ends with `stop()` and with this process. @throws Error that
 * names the package to install when there is no binary, or with the server's output when it does not start.
 */
export async function startDynamo(options: DynamoServerOptions = {}): Promise<DynamoServer> {
  const command = await findDynoxide();
  const storage = await storageArguments(options.stateDir);
  if (options.transport === "pipe") return openDynamoPipe(command, storage);
  let refusal = "";
  for (let attempt = 0; attempt < (options.port === undefined ? startAttempts : 1); attempt++) {
    const port = options.port ?? (await freePort());
    const child = startTethered({ command, args: ["serve", "--host", "127.0.0.1", "--port", `${port}`, ...storage] });
    const endpoint = `http://127.0.0.1:${port}`;
    const failure = await untilItAnswers(endpoint, () => child.exit());
    if (failure === undefined) {
      const client = createEmulatorClient(endpoint);
      return {
        endpoint,
        send: client.send,
        async stop() {
          client.close();
          await child.stop();
        },
      };
    }
    await child.stop();
    refusal = failure;
  }
  throw new Error(`the local DynamoDB did not start: ${refusal}`);
}

async function storageArguments(stateDir: string | undefined): Promise<string[]> {
  if (stateDir === undefined) return [];
  await mkdir(stateDir, { recursive: true });
  return ["--db-path", join(stateDir, "dynamodb.sqlite")];
}

async function findDynoxide(): Promise<string> {
  const packageName = `@dynoxide/${process.platform}-${process.arch}`;
  const packaged = resolvePackaged(packageName);
  if (packaged !== undefined) return packaged;
  try {
    await promisify(execFile)("dynoxide", ["--version"]);
    return "dynoxide";
  } catch (cause) {
    throw new LocalFailure(
      `DynamoDB is not installed: found neither the npm package ${packageName} nor a dynoxide binary on the PATH; ` +
        `install one (\`npm install ${packageName}\`, or a release of github.com/nubo-db/dynoxide)`,
      { exit: "unknown", next: `npm install ${packageName}`, cause },
    );
  }
}

function resolvePackaged(packageName: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${packageName}/dynoxide`);
  } catch {
    return undefined;
  }
}

/** Waits until the server answers like dynoxide. @returns the reason if it never will. */
async function untilItAnswers(endpoint: string, exit: () => string | undefined): Promise<string | undefined> {
  const deadline = Date.now() + answerWithinMs;
  while (Date.now() < deadline) {
    const ended = exit();
    if (ended !== undefined) return ended;
    try {
      const answer = await fetch(endpoint, {
        headers: { connection: "close" },
        signal: AbortSignal.timeout(probeTimeoutMs),
      });
      await answer.arrayBuffer();
      if (answer.headers.get("server")?.startsWith("Dynoxide") && exit() === undefined) return undefined;
    } catch {
      // The server does not listen yet.
    }
    await sleep(probeEveryMs);
  }
  return `${endpoint} did not answer within ${answerWithinMs} ms`;
}
