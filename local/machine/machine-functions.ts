import type { Principals } from "#local/aws/iam/principals.ts";
import { renewedCredentials } from "#local/aws/iam/renewed-credentials.ts";
import type { AccountPool } from "#local/aws/lambda/account-pool.ts";
import { type LambdaHandler, localRegion } from "#local/aws/lambda/lambda-context.ts";
import { type FunctionOptions, type LambdaFunction, lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { type Sandbox, sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import type { SocketFate } from "#local/aws/lambda/sandbox-network.ts";
import { threadSandbox } from "#local/aws/lambda/thread-sandbox.ts";
import type { PacedClock } from "#local/base/paced-clock.ts";
import { createRandom, type Random } from "#local/base/random.ts";
import { type Deployment, sessionArnOf } from "#local/machine/deployment.ts";
import { type FunctionCode, functionCode, tracedClients } from "#local/machine/function-code.ts";
import type { FunctionThreadData } from "#local/machine/function-thread.ts";
import type { FunctionPlan } from "#local/template/machine-plan.ts";
import { defined } from "#shared/base/defined.ts";
import { type AwsClientOptions, type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export interface SandboxOptions extends WireOptions {
  /** What is to be done to the clients of this sandbox. */
  readonly aws?: (clients: AwsClients) => AwsClients;
}

/** How functions run; a part of MachineOptions. */
export interface RunOptions extends Pick<FunctionOptions, "overrun"> {
  /**
   * A new sandbox of a function, by default what `wire` gives: the function with connections of its own and, where
   * given, a clock that goes wrong or clients that are watched. For tests that let sandboxes die or disagree.
   */
  readonly sandboxes?: (functionName: string, wire: (own?: SandboxOptions) => LambdaHandler) => LambdaHandler;
  /** The code of a function by its folder; this version's by default. For tests in which another version runs, too. */
  readonly code?: (folder: string) => FunctionCode;
  /**
   * `threads`: each sandbox has a thread of its own, whose heap is as large as the function's memory; slow to start.
   * Default `one process`.
   */
  readonly isolation?: "one process" | "threads";
  /** How often connections do not live through the time between two invocations. */
  readonly sockets?: SocketLoss;
  /**
   * The clock of the functions; the system's by default. With one that runs faster, timeouts, delays and batching
   * windows are as much shorter, so that watchdogs and back-offs come soon.
   */
  readonly clock?: PacedClock;
  /** Gets what functions log and measure, line by line; not from those that run in threads. */
  readonly onLine?: (functionName: string, line: string) => void;
  /** Seed of the faults; whoever chooses it prints it. */
  readonly seed?: number;
}

/** Probabilities; what is left over is that they live on. */
export interface SocketLoss {
  readonly closed: number;
  readonly reset: number;
}

const everydayLoss: SocketLoss = { closed: 0.5, reset: 0.1 };
/** Longer than any thread lives that a test starts: unlike the clients of this process, it cannot ask for others. */
const threadSessionMs = 12 * 60 * 60 * 1000;

export interface FunctionParts {
  readonly deployment: Deployment;
  readonly principals: Principals;
  readonly endpoints: AwsClientOptions["endpoints"];
  readonly account: AccountPool;
  readonly run: RunOptions;
}

/**
 * Gives the functions of the plan, each with the environment and the role that the stacks give it.
 * @param pace - whether its time limit is in seconds of the functions' clock.
 * @throws Error naming what is wrong with the environment.
 */
export function functionMaker(parts: FunctionParts): (plan: FunctionPlan, pace: "paced" | "unpaced") => LambdaFunction {
  const { run } = parts;
  const { code = functionCode } = run;
  const random = createRandom(run.seed ?? 1);
  return (plan, pace) => {
    code(plan.folder).check(parts.deployment.variables(plan));
    return lambdaFunction({
      functionName: plan.folder,
      timeoutSeconds: plan.timeoutSeconds,
      memoryMb: plan.memoryMiB,
      recursiveLoop: plan.recursiveLoop,
      tenancy: plan.tenancy,
      account: parts.account,
      newSandbox: () => newSandbox(parts, plan),
      socketFate: () => fateOf(random, run.sockets ?? everydayLoss),
      ...defined({ overrun: run.overrun }),
      ...(run.clock === undefined || pace === "unpaced" ? {} : { clock: run.clock }),
    });
  };
}

function newSandbox(parts: FunctionParts, plan: FunctionPlan): Sandbox {
  const { deployment, principals, endpoints, run } = parts;
  const variables = deployment.variables(plan);
  const principalArn = sessionArnOf(plan);
  if (run.isolation === "threads") {
    if (run.sandboxes !== undefined || run.clock !== undefined || run.code !== undefined)
      throw new Error("isolation is threads: they run functions as they are; leave out sandboxes, code and clock");
    const credentials = principals.startSession({ principalArn, expiresAt: new Date(Date.now() + threadSessionMs) });
    const data: FunctionThreadData = {
      folder: plan.folder,
      variables,
      clients: { region: localRegion, credentials, endpoints },
    };
    const module = new URL("./function-thread.ts", import.meta.url).href;
    return threadSandbox({ module, data, memoryMiB: plan.memoryMiB });
  }
  const { sandboxes = (_name, wire) => wire(), code = functionCode } = run;
  const { onLine } = run;
  const output = onLine && ((line: string) => onLine(plan.folder, line));
  const given = defined({ clock: run.clock, output });
  const handler = sandboxes(plan.folder, ({ aws: watch = (clients: AwsClients) => clients, ...own } = {}) => {
    const credentials = renewedCredentials(principals, principalArn);
    const clients = watch(tracedClients(awsClients({ region: localRegion, credentials, endpoints })));
    return code(plan.folder).wire(variables, clients, { ...given, ...own });
  });
  return sharedSandbox(handler);
}

function fateOf(random: Random, { closed, reset }: SocketLoss): SocketFate {
  if (random.chance(reset)) return "reset";
  return random.chance(closed / (1 - reset)) ? "closed" : "kept";
}
