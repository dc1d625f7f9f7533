/** A program of Node in Linux namespaces of its own, as its parent sees it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { FromNamespace, ToNamespace } from "#test/support/zone-networks/in-namespace.ts";

export interface NamespacedProcess {
  readonly pid: number;
  /** @throws the error of the program, or an error that says that the program ended before it answered. */
  ask<Answer>(question: object): Promise<Answer>;
  /** Ends it as SIGKILL does, with its namespaces and their links. */
  kill(): Promise<void>;
}

interface StartOptions {
  /** The words of a command that enters namespaces, to which the program is appended. */
  readonly enter: readonly [string, ...string[]];
  /** The URL of the program. */
  readonly program: string;
  /** Takes a connection to a server that listens inside. */
  readonly onConnection: (inside: { readonly address: string; readonly port: number }, socket: Socket) => void;
}

/** The program ends when this process ends, because the channel between them is closed then. */
export function startNamespaced({ enter, program, onConnection }: StartOptions): NamespacedProcess {
  const [command, ...words] = enter;
  const child = spawn(command, [...words, "--", process.execPath, new URL(program).pathname], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, POWERTOOLS_LOG_LEVEL: "SILENT", POWERTOOLS_METRICS_DISABLED: "true" },
  });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let questions = 0;
  let isOver = false;
  child.on("message", (message: FromNamespace, handle) => {
    if (message.kind === "connection") {
      // It is gone when the other side has closed it meanwhile.
      if (handle !== undefined) onConnection(message, handle as Socket);
      return;
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "answer") asked?.resolve(message.answer);
    else asked?.reject(Object.assign(new Error(message.message), { name: message.name, stack: message.stack }));
  });
  const end = (why: string) => {
    isOver = true;
    for (const { reject } of waiting.values()) reject(new Error(`${program} ended: ${why}`));
    waiting.clear();
  };
  child.on("error", ({ message }) => end(message));
  const exited = once(child, "exit");
  exited.then(([code, signal]) => end(signal ?? `exit code ${code}`)).catch(() => {});
  return {
    pid: child.pid ?? 0,
    ask<Answer>(question: object): Promise<Answer> {
      const asked = Promise.withResolvers<unknown>();
      if (isOver) return Promise.reject(new Error(`${program} has ended`));
      questions += 1;
      waiting.set(questions, asked);
      child.send({ id: questions, question } satisfies ToNamespace);
      return asked.promise as Promise<Answer>;
    },
    kill: () => killed(child, exited),
  };
}

async function killed(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await exited;
}
