import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCli } from "#cli/run.ts";
import type { CliIo } from "#cli/session/io.ts";
import { apiHandler } from "#functions/api/http/api-handler.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { Principals } from "#local/aws/iam/principals.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";
import type { LogLine, LogQuery, Table } from "#shared/ports.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { serveBlobs } from "#test/support/served-blobs.ts";
import { type Ran, ranTo, startNode } from "#test/support/started-process.ts";

export const principal = "arn:aws:iam::000000000000:user/ana";
const root = fileURLToPath(new URL("../../../", import.meta.url));
const key = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };

export interface Terminal {
  readonly input?: string;
  /** The answers of the person at the terminal; absent: there is no terminal. */
  readonly answer?: string;
  readonly outIsTerminal?: boolean;
  /** 120 if absent. */
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly interrupted?: AbortSignal;
  /** The clock of the person's machine. */
  readonly now?: () => Date;
  /** Called with all output so far. */
  readonly onOut?: (out: string) => void;
}

export interface CliFixture<T extends Table = MemoryTable> {
  readonly table: T;
  readonly blobs: MemoryBlobStore;
  /** The principals that may sign, besides the user of the contexts. */
  readonly principals: Principals;
  readonly url: string;
  /** A folder of this test's own; the command's working directory. */
  readonly folder: string;
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** The log lines of the functions in CloudWatch, the oldest first. */
  readonly logLines: LogLine[];
  /** The number of requests that the API received. */
  requests(): number;
  write(name: string, text: string): string;
  /** In this process, with a made-up terminal. */
  run(line: string | readonly string[], terminal?: Terminal): Promise<Ran>;
  /** `node cli/starling.mjs` under the machine's own Node. */
  spawn(line: string, options?: { readonly input?: string; readonly killAfterMs?: number }): Promise<Ran>;
  stop(): Promise<void>;
}

/** The api function behind the local HTTP front, which verifies signatures, and a context that points at it. */
export function startCliFixture(settings: Settings = {}): Promise<CliFixture> {
  return startCliFixtureOver(new MemoryTable(), new MemoryBlobStore(), settings);
}

/** The knowledge of the API besides its rows. */
type Settings = Partial<Pick<ApiPorts, "clock" | "zoneNetworks" | "resolveZone">>;

export async function startCliFixtureOver<T extends Table>(
  table: T,
  blobs = new MemoryBlobStore(),
  settings: Settings = {},
): Promise<CliFixture<T>> {
  const log: Record<string, unknown>[] = [];
  const write = (message: string, fields?: Readonly<Record<string, unknown>>) => log.push({ message, ...fields });
  const links = await serveBlobs(blobs);
  const logLines: LogLine[] = [];
  const handler = apiHandler({
    table,
    blobs,
    sender: new MemorySender(),
    clock: systemClock,
    ids: randomIds,
    installation: "starling.111122223333.eu-west-1",
    ...healthyInstallation,
    ...settings,
    links,
    uploads: links,
    logs: { read: async (query) => linesSince(logLines, query) },
    log: { info: write, warn: write, error: write },
  });
  let requests = 0;
  const principals = new Principals([{ ...key, principalArn: principal }]);
  const lambda = lambdaFunction({
    functionName: "api",
    timeoutSeconds: 29,
    newSandbox: () =>
      sharedSandbox(async (event, context) => {
        requests++;
        return handler(event, context);
      }),
  });
  const front: HttpFront = await startHttpFront({
    routes: gatewayRouteKeys().map((routeKey) => ({ routeKey, authorization: "iam", lambda })),
    principals,
  });
  const folder = mkdtempSync(join(tmpdir(), "starling-cli-"));
  const config = join(folder, ".config", "config.json");
  mkdirSync(join(folder, ".config"));
  const here = { endpoint: front.url, region: "us-east-1", namespace: "payments", credentials: key };
  const forged = { ...here, credentials: { ...key, secretAccessKey: "wrong" } };
  const gone = { ...here, endpoint: "http://127.0.0.1:9" };
  writeFileSync(config, JSON.stringify({ contexts: { here, forged, gone }, current: "here" }));
  const env = { STARLING_CONFIG: config, PATH: process.env.PATH ?? "", HOME: folder };
  return {
    table,
    blobs,
    principals,
    url: front.url,
    folder,
    log,
    logLines,
    requests: () => requests,
    write(name, text) {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    },
    async run(line, terminal = {}) {
      const argv = typeof line === "string" ? line.split(" ") : line;
      let out = "";
      let err = "";
      const io: CliIo = {
        out: (text) => {
          out += text;
          terminal.onOut?.(out);
        },
        err: (text) => {
          err += text;
        },
        outIsTerminal: terminal.outIsTerminal === true,
        canAsk: terminal.answer !== undefined,
        columns: terminal.columns ?? 120,
        env: { ...env, ...terminal.env },
        cwd: folder,
        readInput: async () => terminal.input ?? "",
        ask: async (question) => {
          err += question;
          return terminal.answer ?? "";
        },
        now: terminal.now ?? (() => new Date()),
        interrupted: terminal.interrupted ?? new AbortController().signal,
      };
      const code = await runCli(argv, io);
      return { code, out, err };
    },
    async spawn(line, { input = "", killAfterMs } = {}) {
      const args = [join(root, "cli", "starling.mjs"), ...line.split(" ")];
      const started = startNode(args, { cwd: folder, env, input, node: machineNode() });
      if (killAfterMs !== undefined) {
        started.child.stderr?.on("data", () => setTimeout(() => started.child.kill("SIGINT"), killAfterMs));
      }
      return ranTo(started);
    },
    async stop() {
      await front.stop();
      await links.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function linesSince(lines: readonly LogLine[], { of, since, limit }: LogQuery) {
  const found = lines.filter(
    (line) => line.at >= since.toISOString() && (line.function === "api") === (of === "audit"),
  );
  return { lines: found.slice(0, limit), isMore: found.length > limit };
}

/** The Node that people have: the first on the path that does not come with the dependencies. */
function machineNode(): string {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const found = folders.map((folder) => join(folder, "node")).find((path) => existsSync(path));
  return found ?? process.execPath;
}

export const fleet = `apiVersion: starling.dev/v1alpha1
kind: Source
metadata:
  name: app
spec:
  git:
    url: https://github.com/acme/app
---
apiVersion: starling.dev/v1alpha1
kind: Cluster
metadata: {name: c1, labels: {env: prod}}
spec:
  endpoint: {server: "https://c1.example.com:6443", token: {secret: starling/clusters/c1}}
---
apiVersion: starling.dev/v1alpha1
kind: SyncGroup
metadata: {name: shop}
spec:
  clusters: {all: true}
  templates:
    - {name: web, source: app}
`;
