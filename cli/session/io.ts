import { createInterface } from "node:readline/promises";
import { plainText } from "#shared/base/plain-text.ts";

/** Input and output of the command, so that a test can stand for the terminal. */
export interface CliIo {
  /** Prints results, which scripts read. */
  out(text: string): void;
  /** Prints progress, prompts, warnings and failures. */
  err(text: string): void;
  readonly outIsTerminal: boolean;
  /** Whether a person can answer a question. */
  readonly canAsk: boolean;
  readonly columns: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readInput(): Promise<string>;
  ask(question: string): Promise<string>;
  now(): Date;
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal;
}

/** Every text is printed with escaped control characters, because clusters, repositories and rows of a stolen role may bring them. */
export interface GuardedIo extends CliIo {
  /** Prints escape sequences of the command itself, around texts that are plain already: colours and redrawn lines. */
  outWithSequences(text: string): void;
}

export function guardedIo(io: CliIo): GuardedIo {
  return {
    ...io,
    out: (text) => io.out(plainText(text)),
    err: (text) => io.err(plainText(text)),
    ask: (question) => io.ask(plainText(question)),
    outWithSequences: (text) => io.out(text),
  };
}

export function processIo(): CliIo {
  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
  process.stdout.on("error", endQuietly);
  return {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY === true,
    canAsk: process.stdin.isTTY === true && process.stderr.isTTY === true,
    columns: process.stdout.columns ?? 120,
    env: process.env,
    cwd: process.cwd(),
    readInput,
    ask,
    now: () => new Date(),
    interrupted: interrupt.signal,
  };
}

/** Ends the command when the reader of a pipe has ended: `starling get ... | head`. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}
