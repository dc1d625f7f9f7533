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
  /** Wraps the clients of this sandbox. */
  readonly aws?: (clients: AwsClients) => AwsClients;
}

/** The options for running functions; a part of MachineOptions. */
export interface RunOptions extends Pick<FunctionOptions, "overrun"> {
  /**
   * Creates a sandbox of a function. The default is the result of `wire`, the function with its own connections. A test
   * can pass a wrong clock or watched clients to `wire`, to make sandboxes die or disagree.
   */
  readonly sandboxes?: (functionName: string, wire: (own?: SandboxOptions) => LambdaHandler) => LambdaHandler;
  /** The code of a function by its folder. The default is this version's code. A test can also run another version. */
  readonly code?: (folder: string) => FunctionCode;
  /**
   * With `threads`, each sandbox has its own thread with a heap as large as the function's memory, which starts slowly.
   * The default is `one process`.
   */
  readonly isolation?: "one process" | "threads";
  /** How often connections are lost between two invocations. */
  readonly sockets?: SocketLoss;
  /**
   * The clock of the functions. The default is the system's clock. A faster clock shortens timeouts, delays and
   * batching windows, so that watchdogs and retries come soon.
   */
  readonly clock?: PacedClock;
  /** Receives the log and metric lines of functions, except for those that run in threads. */
  readonly onLine?: (functionName: string, line: string) => void;
  /** The seed of the faults. The caller prints it. */
  readonly seed?: number;
}

/** Probabilities per invocation. Otherwise the connections stay open. */
export interface SocketLoss {
  readonly closed: number;
  readonly reset: number;
}

const everydayLoss: SocketLoss = { closed: 0.5, reset: 0.1 };
/**
 * Longer than any thread of a test lives. A thread cannot ask for new credentials, unlike the clients of this process.
 */
const threadSessionMs = 12 * 60 * 60 * 1000;

export interface FunctionParts {
  readonly deployment: Deployment;
  readonly principals: Principals;
  readonly endpoints: AwsClientOptions["endpoints"];
  readonly account: AccountPool;
  readonly run: RunOptions;
}

/**
 * Returns a function that creates functions of the plan, each with its environment and role from the stacks. @param
 * pace - whether the time limit uses the functions' clock. @throws Error that names the problem in the environment.
 */
export function functionMaker(parts: FunctionParts): (plan: FunctionPlan, pace: "paced" | "unpaced") => LambdaFunction {
  const { run } = parts;
  const { code = functionCode } = run;
  const random = createRandom(run.seed ?? 1);
  return (plan, pace) => {
    code(plan.folder).check(parts.deployment.variables(plan));
    return lambdaFunction({
      functionName: plan.functionName,
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
  const region = plan.place?.region ?? localRegion;
  if (run.isolation === "threads") {
    if (run.sandboxes !== undefined || run.clock !== undefined || run.code !== undefined)
      throw new Error("isolation threads runs unchanged functions; leave out sandboxes, code and clock");
    const credentials = principals.startSession({ principalArn, expiresAt: new Date(Date.now() + threadSessionMs) });
    const data: FunctionThreadData = {
      folder: plan.folder,
      variables,
      clients: { region, credentials, endpoints },
    };
    const module = new URL("./function-thread.ts", import.meta.url).href;
    return threadSandbox({ module, data, memoryMiB: plan.memoryMiB });
  }
  const { sandboxes = (_name, wire) => wire(), code = functionCode } = run;
  const { onLine } = run;
  const output = onLine && ((line: string) => onLine(plan.functionName, line));
  const given = defined({ clock: run.clock, output });
  const handler = sandboxes(plan.functionName, ({ aws: watch = (clients: AwsClients) => clients, ...own } = {}) => {
    const credentials = renewedCredentials(principals, principalArn);
    const clients = watch(tracedClients(awsClients({ region, credentials, endpoints })));
    return code(plan.folder).wire(variables, clients, { ...given, ...own });
  });
  return sharedSandbox(handler);
}

function fateOf(random: Random, { closed, reset }: SocketLoss): SocketFate {
  if (random.chance(reset)) return "reset";
  return random.chance(closed / (1 - reset)) ? "closed" : "kept";
}
