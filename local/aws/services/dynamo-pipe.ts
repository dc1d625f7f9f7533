import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { dynamoError, jsonReply } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";

export interface DynamoPipe {
  readonly send: Forward;
  /** The process id. */
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

const killAfterMs = 5000;

/**
 * Runs dynoxide without a port, because a port accepts any signature from every user of the machine. Its operations are
 * tools of the Model Context Protocol (JSON-RPC, one message per line) over pipes.
 *
 * This transport lacks consumed capacity, the items of failed conditions, the cancellation reasons of a transaction
 * except for their codes, and the refusal of consistent reads of an index.
 *
 * The process ends with its standard input, which the kernel closes when this process ends for any reason. @throws
 * Error with the process's last output when it does not answer.
 */
export async function openDynamoPipe(command: string, storage: readonly string[]): Promise<DynamoPipe> {
  // The process has its own group, so that Ctrl-C in the terminal does not end it before its parent is done.
  const child = spawn(command, ["mcp", ...storage], { detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const connection = connect(child);
  try {
    const clientInfo = { name: "starling", version: "1" };
    await connection.ask("initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo });
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  connection.notify("notifications/initialized");
  return {
    pid: child.pid,
    async send({ headers, body }) {
      const operation = String(headers["x-amz-target"] ?? "").split(".")[1] ?? "";
      const request = JSON.parse(body.toString() || "{}") as Readonly<Record<string, unknown>>;
      const parameters = Object.entries(request).map(([name, value]) => [snakeCase(name), value]);
      // Without `raw`, the answer describes the table in another form.
      const raw = operation === "DescribeTable" ? { raw: true } : {};
      const call = { name: snakeCase(operation), arguments: { ...Object.fromEntries(parameters), ...raw } };
      const answered = await connection.ask("tools/call", call);
      const snapshot = operation === "DeleteTable" ? snapshotIn(answered) : undefined;
      if (snapshot !== undefined) {
        await connection.ask("tools/call", { name: "delete_snapshot", arguments: { name: snapshot } });
      }
      return replyOf(operation, answered);
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.stdin.end();
      const kill = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
      await exited;
      clearTimeout(kill);
    },
  };
}

interface Answered {
  readonly id?: number;
  readonly result?: { readonly content?: readonly { readonly text: string }[]; readonly isError?: boolean };
  readonly error?: { readonly message: string };
}

interface Waiting {
  resolve(answered: Answered): void;
  reject(error: Error): void;
}

function connect(child: ChildProcessByStdio<Writable, Readable, Readable>) {
  const waiting = new Map<number, Waiting>();
  let complaint = "";
  let ended: Error | undefined;
  let lastId = 0;

  function end(why: string): void {
    ended ??= new Error(`the local DynamoDB ended: ${why}${complaint === "" ? "" : `: ${complaint.trim()}`}`);
    for (const each of waiting.values()) each.reject(ended);
    waiting.clear();
  }

  child.on("error", (error) => end(error.message));
  child.on("close", (code, signal) => end(`${signal ?? `exit code ${code}`}`));
  child.stdin.on("error", () => {});
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-4096);
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const answered = JSON.parse(line) as Answered;
    const each = waiting.get(answered.id ?? 0);
    waiting.delete(answered.id ?? 0);
    each?.resolve(answered);
  });
  const write = (message: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return {
    ask(method: string, params: object): Promise<Answered> {
      if (ended !== undefined) return Promise.reject(ended);
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        write({ id, method, params });
      });
    },
    notify: (method: string) => write({ method }),
  };
}

/** The result of a tool as a reply of DynamoDB. */
function replyOf(operation: string, { result, error }: Answered): HttpReply {
  const text = result?.content?.[0]?.text;
  if (error !== undefined || text === undefined) {
    const message = `the local DynamoDB does not support ${operation}: ${error?.message ?? "no result"}`;
    return dynamoError({ code: "UnknownOperationException", message });
  }
  if (result?.isError !== true) {
    const body = Buffer.from(text);
    const { headers } = jsonReply(200, {});
    return { status: 200, headers: { ...headers, "content-length": body.length }, body };
  }
  const { error_type: code = "SerializationException", message = text } = parsedError(text);
  if (code === "InternalServerError") return jsonReply(500, { __type: code, message });
  return dynamoError({ code, message, ...(code === "TransactionCanceledException" ? cancellation(message) : {}) });
}

/**
 * dynoxide makes a snapshot of the whole database before it deletes a table. This is the snapshot's name, if there is
 * one.
 */
function snapshotIn({ result }: Answered): string | undefined {
  return /"_auto_snapshot":\{[^}]*"name":"([^"]+)"/.exec(result?.content?.[0]?.text ?? "")?.[1];
}

function parsedError(text: string): { readonly error_type?: string; readonly message?: string } {
  try {
    return JSON.parse(text) as ReturnType<typeof parsedError>;
  } catch {
    // The text is not JSON when dynoxide could not read the request.
    return {};
  }
}

/** The cancellation reasons at the end of the message, for example `[ConditionalCheckFailed, None]`. */
function cancellation(message: string) {
  const codes = /\[([^\]]*)\]$/.exec(message)?.[1]?.split(", ") ?? [];
  return { members: { Message: message, CancellationReasons: codes.map((Code) => ({ Code })) } };
}

/** For example `transact_write_items` for `TransactWriteItems`. */
function snakeCase(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}
