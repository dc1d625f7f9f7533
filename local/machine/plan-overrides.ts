/** Where this machine is meant to differ from the stacks: all of it, in one place. */

import type { FunctionPlan, MachinePlan } from "#local/template/machine-plan.ts";
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";

export interface PlanOverrides {
  /** File with the PEM certificates of this machine's git hosts. */
  readonly gitCaFile?: string;
  /** What clusters are told of whose they are, instead of the stacks' name, account and region: those every machine has. */
  readonly installationId?: string;
  /** Timeouts of functions by folder, and of the visibility in their queues, for tests that let workers die. */
  readonly timeoutSeconds?: Readonly<Record<string, number>>;
}

/** Context of the stacks: here nothing is shared with anybody, and as much may run as a large fleet wants. */
export const largeAccount = { clusters: "10000", concurrency: "1000" } as const;

/** Between ticks, where the stacks say a minute: somebody is watching. */
export const defaultTickEveryMs = 1000;

/** This machine's git hosts and clusters are all on the loopback interface. */
const loopback = "127.0.0.0/8,localhost,::1/128";

export function overridePlan(plan: MachinePlan, overrides: PlanOverrides): MachinePlan {
  const { gitCaFile, installationId, timeoutSeconds = {} } = overrides;
  const additions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    resolve: { STARLING_GIT_ALLOW: loopback, ...defined({ STARLING_GIT_CA_FILE: gitCaFile }) },
  };
  const identity = (lambda: FunctionPlan) =>
    installationId === undefined || lambda.environment.STARLING_INSTALLATION === undefined
      ? {}
      : { STARLING_INSTALLATION: installationId };
  const overridden = (lambda: FunctionPlan): FunctionPlan => ({
    ...lambda,
    environment: { ...lambda.environment, ...additions[lambda.folder], ...identity(lambda) },
    timeoutSeconds: timeoutSeconds[lambda.folder] ?? lambda.timeoutSeconds,
  });
  return {
    ...plan,
    functions: plan.functions.map(overridden),
    outputs: plan.outputs.map((output) =>
      installationId === undefined || output.name !== "ExternalId"
        ? output
        : { ...output, value: externalIdOf(installationId, "<name of the Cluster>") },
    ),
    queues: plan.queues.map((queue) => {
      const worker = plan.eventSources.find((source) => source.queue === queue.name)?.function;
      const folder = plan.functions.find(({ name }) => name === worker)?.folder ?? "";
      const seconds = timeoutSeconds[folder];
      return seconds === undefined ? queue : { ...queue, visibilityTimeoutSeconds: seconds };
    }),
  };
}
