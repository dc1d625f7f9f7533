import { once } from "node:events";
import { Agent, createServer, get, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LambdaContext } from "#local/aws/lambda/lambda-context.ts";
import { type FunctionOptions, type LambdaFunction, lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { type Sandbox, sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import type { SocketFate } from "#local/aws/lambda/sandbox-network.ts";
import { threadSandbox } from "#local/aws/lambda/thread-sandbox.ts";
import { systemClock } from "#shared/adapters/system.ts";

const alive = new AbortController().signal;
let server: Server;
let url = "";
let requests: string[] = [];
let connections: Socket[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.end("ok");
  });
  server.on("connection", (socket) => connections.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});
beforeEach(() => {
  requests = [];
  connections = [];
});

/** A sandbox with its own HTTP client, like the SDK of a function. */
function calling(paths: (event: unknown) => readonly string[]): () => Sandbox {
  return () => {
    const agent = new Agent({ keepAlive: true });
    return sharedSandbox(async (event: unknown) => {
      const answers = await Promise.allSettled(paths(event).map((path) => call(agent, path)));
      return answers.map((answer) => (answer.status === "fulfilled" ? answer.value : answer.reason.code));
    });
  };
}

async function call(agent: Agent, path: string): Promise<number | undefined> {
  const request = get(`${url}${path}`, { agent });
  const [response] = await once(request, "response");
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

function make(options: Partial<FunctionOptions> & Pick<FunctionOptions, "newSandbox">): LambdaFunction {
  return lambdaFunction({ functionName: "worker", timeoutSeconds: 20, ...options });
}

async function resultOf(lambda: LambdaFunction, event: unknown): Promise<unknown> {
  const invocation = await lambda.invoke({ event, killed: alive });
  return invocation.outcome === "returned" ? invocation.result : invocation;
}

describe("sandboxes", () => {
  test("a sandbox serves one invocation at a time, and is used again", async () => {
    let made = 0;
    const gate = Promise.withResolvers<void>();
    const lambda = make({
      newSandbox() {
        made += 1;
        const own = made;
        return sharedSandbox(async (event: unknown) => {
          if (event === "wait") await gate.promise;
          return own;
        });
      },
    });
    const first = resultOf(lambda, "wait");
    expect(await resultOf(lambda, "")).toBe(2);
    expect(await resultOf(lambda, "")).toBe(2);
    gate.resolve();
    expect(await first).toBe(1);
    expect(lambda.idle()).toBe(2);
    expect(made).toBe(2);
  });

  test("an invocation fails if its sandbox cannot be made", async () => {
    const lambda = make({
      newSandbox() {
        throw new Error("no such thing");
      },
    });
    expect(await resultOf(lambda, {})).toMatchObject({ outcome: "failed", error: new Error("no such thing") });
  });

  test("a sandbox is used again after its function has thrown", async () => {
    let made = 0;
    const lambda = make({
      newSandbox() {
        made += 1;
        return sharedSandbox(() => {
          throw new Error("boom");
        });
      },
    });
    await resultOf(lambda, {});
    await resultOf(lambda, {});
    expect(made).toBe(1);
  });

  test("an invocation reports its time, memory and hops", async () => {
    const lambda = make({ memoryMb: 2048, newSandbox: () => sharedSandbox(() => sleep(20)) });
    const { figures } = await lambda.invoke({ event: {}, killed: alive });
    expect(figures.durationMs).toBeGreaterThanOrEqual(19);
    expect(figures).toMatchObject({ billedMs: Math.ceil(figures.durationMs), hops: 1 });
    expect(figures.memory).toEqual({ peakMiB: expect.any(Number), of: "process", limitMiB: 2048 });
    expect(figures.memory.peakMiB).toBeGreaterThan(20);
  });
});

describe("connections between two invocations", () => {
  const fated = (fate: SocketFate) =>
    make({ socketFate: () => fate, newSandbox: calling((event) => event as readonly string[]) });

  test.each<[SocketFate, number, readonly unknown[], number]>([
    ["kept", 1, [200], 1],
    ["closed", 1, [200], 2],
    ["reset", 1, ["ECONNRESET"], 1],
    ["reset", 2, ["ECONNRESET", "ECONNRESET"], 2],
  ])(
    "if connections are %s in between (%i), the next invocation gets %j after %i connections",
    async (fate, count, seen, opened) => {
      const lambda = fated(fate);
      const paths = Array.from({ length: count }, (_, index) => `/${index}`);
      expect(await resultOf(lambda, paths)).toEqual(paths.map(() => 200));
      expect(await resultOf(lambda, paths)).toEqual(seen);
      expect(connections).toHaveLength(opened);
    },
  );

  test("a reset closes all idle connections of a sandbox", async () => {
    const lambda = fated("reset");
    await resultOf(lambda, ["/a", "/b", "/c"]);
    expect(await resultOf(lambda, ["/a"])).toEqual(["ECONNRESET"]);
    await expect.poll(() => connections.filter((socket) => socket.destroyed).length).toBe(3);
  });

  test("connections of one sandbox are not those of another", async () => {
    const lambda = fated("closed");
    const gate = Promise.withResolvers<void>();
    const agent = new Agent({ keepAlive: true });
    const bystander = make({
      newSandbox: () =>
        sharedSandbox(async () => {
          await call(agent, "/bystander");
          await gate.promise;
          return call(agent, "/bystander");
        }),
    });
    const waiting = resultOf(bystander, {});
    await expect.poll(() => requests).toEqual(["/bystander"]);
    await resultOf(lambda, ["/a"]);
    gate.resolve();
    expect(await waiting).toBe(200);
    expect(connections).toHaveLength(2);
  });
});

describe("an invocation that takes too long", () => {
  const late = (overrun: "destroyed" | "abandoned") => {
    const wokeUp = Promise.withResolvers<unknown>();
    const lambda = make({
      overrun,
      timeoutSeconds: 0.1,
      newSandbox: () => {
        const agent = new Agent({ keepAlive: true });
        return sharedSandbox(async () => {
          await call(agent, "/early");
          await sleep(200);
          wokeUp.resolve(await call(agent, "/late").catch((error) => error.code));
        });
      },
    });
    return { lambda, wokeUp: wokeUp.promise };
  };

  test("an invocation that takes too long is cut off, and its later requests fail", async () => {
    const { lambda, wokeUp } = late("destroyed");
    expect(await resultOf(lambda, {})).toMatchObject({ outcome: "timeout" });
    expect(await wokeUp).toBe("ECONNRESET");
    expect(requests).toEqual(["/early"]);
    expect(lambda.idle()).toBe(0);
  });

  test("an abandoned invocation continues, and its result is ignored", async () => {
    const { lambda, wokeUp } = late("abandoned");
    expect(await resultOf(lambda, {})).toMatchObject({ outcome: "timeout" });
    expect(await wokeUp).toBe(200);
    expect(lambda.idle()).toBe(0);
  });

  test("the remaining time of an invocation follows the given clock", async () => {
    let now = 0;
    const lambda = make({
      timeoutSeconds: 20,
      clock: { ...systemClock, rate: 1000, now: () => new Date(now) },
      newSandbox: () =>
        sharedSandbox((_event: unknown, context: LambdaContext) => {
          const leftAtFirst = context.getRemainingTimeInMillis();
          now += 15_000;
          const left = [leftAtFirst, context.getRemainingTimeInMillis()];
          return new Promise((resolve) => setTimeout(resolve, 100, left));
        }),
    });
    // The invocation takes 100 ms of real time, and 20 s of the given clock would be 20 ms.
    expect(await resultOf(lambda, {})).toEqual([20_000, 5000]);
    const cut = lambda.invoke({ event: {}, killed: alive });
    now += 5000;
    expect(await cut).toMatchObject({ outcome: "timeout" });
  });
});

describe("threads", () => {
  const module = new URL("../../../../support/scripted-function.ts", import.meta.url).href;
  const threads = (options: Partial<FunctionOptions> = {}) =>
    make({ ...options, newSandbox: () => threadSandbox({ module, data: "hello", memoryMiB: 32 }) });
  const event = (body: string) => ({ Records: [{ body, attributes: { ApproximateReceiveCount: "1" } }] });

  test("each thread has its own module state, and is used again", async () => {
    const lambda = threads();
    expect(await resultOf(lambda, event("greet"))).toEqual({ greeting: "hello", invocations: 1 });
    expect(await resultOf(lambda, event("greet"))).toEqual({ greeting: "hello", invocations: 2 });
    expect(await resultOf(threads(), event("greet"))).toEqual({ greeting: "hello", invocations: 1 });
    const failed = await lambda.invoke({ event: event("throw"), killed: alive });
    expect(failed).toMatchObject({ outcome: "failed", error: { name: "RangeError", message: "out of range" } });
    expect(failed.figures.memory).toMatchObject({ of: "sandbox" });
    expect(failed.figures.memory.peakMiB).toBeLessThan(32);
    expect(await resultOf(lambda, event("greet"))).toEqual({ greeting: "hello", invocations: 4 });
  });

  test("a thread that takes too much memory is killed, and the next invocation gets a new one", async () => {
    const lambda = threads();
    const killed = await lambda.invoke({ event: event("eat"), killed: alive });
    expect(killed).toMatchObject({ outcome: "failed", error: { name: "Runtime.OutOfMemory" } });
    expect(killed.figures.memory).toEqual({ peakMiB: 32, of: "sandbox", limitMiB: 1024 });
    expect(await resultOf(lambda, event("greet"))).toEqual({ greeting: "hello", invocations: 1 });
  });

  test("a thread that never returns to its event loop is cut off", async () => {
    const lambda = threads({ timeoutSeconds: 1.5 });
    expect(await resultOf(lambda, event("spin"))).toMatchObject({ outcome: "timeout" });
    expect(lambda.idle()).toBe(0);
  });
});
