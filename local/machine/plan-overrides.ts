/** All intended differences between this machine and the stacks, in one place. */

import type { FunctionPlan, MachinePlan } from "#local/template/machine-plan.ts";
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import { homeZone, noNetworks } from "#shared/fleet/kinds/zone-name.ts";

export interface PlanOverrides {
  /** The file with the PEM certificates of this machine's git hosts. */
  readonly gitCaFile?: string;
  /**
   * The installation id for clusters. The stacks' id consists of name, account and region, which are the same on every
   * machine.
   */
  readonly installationId?: string;
  /** Timeouts of functions by folder, and visibility timeouts of their queues, for tests that let workers die. */
  readonly timeoutSeconds?: Readonly<Record<string, number>>;
}

/** The context of the stacks. This machine has no other users, so it may run as much as a large fleet needs. */
export const largeAccount = { clusters: "10000", concurrency: "1000" } as const;

/** The time between ticks. The stacks have a minute, but here a person is watching. */
export const defaultTickEveryMs = 1000;

/** All git hosts and clusters of this machine are on the loopback interface. */
export const loopback = "127.0.0.0/8,localhost,::1/128";
/** The functions that ask hosts which people name. */
const asking: ReadonlySet<string> = new Set(["resolve", "webhook"]);

export function overridePlan(plan: MachinePlan, overrides: PlanOverrides): MachinePlan {
  const { gitCaFile, installationId, timeoutSeconds = {} } = overrides;
  const hosts = (lambda: FunctionPlan) => {
    if (lambda.folder === "apply") return { STARLING_CLUSTER_ALLOW: loopback };
    if (!asking.has(lambda.folder)) return {};
    const { STARLING_GIT_ALLOW: allowed } = lambda.environment;
    const all = allowed === undefined ? loopback : `${String(allowed)},${loopback}`;
    return { STARLING_GIT_ALLOW: all, ...defined({ STARLING_GIT_CA_FILE: gitCaFile }) };
  };
  const identity = (lambda: FunctionPlan) =>
    installationId === undefined || lambda.environment.STARLING_INSTALLATION === undefined
      ? {}
      : { STARLING_INSTALLATION: installationId };
  const overridden = (lambda: FunctionPlan): FunctionPlan => ({
    ...lambda,
    environment: { ...withoutHome(lambda.environment), ...hosts(lambda), ...identity(lambda) },
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

/** This machine is no VPC: remedies of home would send people to settings that it does not have. */
function withoutHome(environment: FunctionPlan["environment"]): FunctionPlan["environment"] {
  return environment.STARLING_RESOLVE_ZONE === homeZone
    ? { ...environment, STARLING_RESOLVE_ZONE: noNetworks }
    : environment;
}
