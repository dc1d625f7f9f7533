/** The code of each function by its folder, assembled as in its handler.ts. */
import type * as z from "zod";
import { apiEnv } from "#functions/api/env.ts";
import { wireApi } from "#functions/api/wire.ts";
import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
import { buildEnv } from "#functions/build/env.ts";
import { wireBuild } from "#functions/build/wire.ts";
import { dashboardEnv } from "#functions/dashboard/env.ts";
import { wireDashboard } from "#functions/dashboard/wire.ts";
import { discoverEnv } from "#functions/discover/env.ts";
import { wireDiscover } from "#functions/discover/wire.ts";
import { renderEnv } from "#functions/render/env.ts";
import { wireRender } from "#functions/render/wire.ts";
import { reportEnv } from "#functions/report/env.ts";
import { wireReport } from "#functions/report/wire.ts";
import { resolveEnv } from "#functions/resolve/env.ts";
import { wireResolve } from "#functions/resolve/wire.ts";
import { rolloutEnv } from "#functions/rollout/env.ts";
import { wireRollout } from "#functions/rollout/wire.ts";
import { tickEnv } from "#functions/tick/env.ts";
import { wireTick } from "#functions/tick/wire.ts";
import { webhookEnv } from "#functions/webhook/env.ts";
import { wireWebhook } from "#functions/webhook/wire.ts";
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { currentTrace } from "#local/aws/lambda/sandbox-network.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { CoreClients } from "#shared/lambda/core-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export interface FunctionCode {
  /** @throws Error that names every missing or malformed variable. */
  check(variables: Readonly<Record<string, string>>): void;
  wire(variables: Readonly<Record<string, string>>, aws: AwsClients, options: WireOptions): LambdaHandler;
}

const codes: Readonly<Record<string, FunctionCode>> = {
  api: code(apiEnv, wireApi),
  webhook: code(webhookEnv, wireWebhook),
  tick: code(tickEnv, wireTick),
  discover: code(discoverEnv, wireDiscover),
  resolve: code(resolveEnv, wireResolve),
  rollout: code(rolloutEnv, wireRollout),
  render: code(renderEnv, wireRender),
  build: code(buildEnv, (env) => wireBuild(env)),
  apply: code(applyEnv, wireApply),
  report: code(reportEnv, wireReport),
  dashboard: code(dashboardEnv, wireDashboard),
};

/** @throws Error when no function has this folder. */
export function functionCode(folder: string): FunctionCode {
  const found = codes[folder];
  if (found !== undefined) return found;
  throw new Error(`functions/${folder} is not a function of this machine; add it to local/machine/function-code.ts`);
}

function code<Env>(
  schema: z.ZodType<Env>,
  wire: (env: Env, aws: AwsClients, options: WireOptions) => unknown,
): FunctionCode {
  return {
    check: (variables) => void parseEnv(schema, variables),
    wire: (variables, aws, options) => wire(parseEnv(schema, variables), aws, options) as LambdaHandler,
  };
}

/** Clients that send the trace of the current invocation, as the SDK does on Lambda. */
export function tracedClients<T extends CoreClients & Partial<Pick<AwsClients, "lambda" | "dataIn">>>(aws: T): T {
  const { dynamo, sqs, s3, secrets, lambda, dataIn } = aws;
  traced([dynamo, sqs, s3, secrets, ...(lambda === undefined ? [] : [lambda])]);
  if (dataIn === undefined) return aws;
  return {
    ...aws,
    dataIn: (scope: Parameters<typeof dataIn>[0]) => {
      const clients = dataIn(scope);
      traced([clients.dynamo, clients.sqs, clients.s3]);
      return clients;
    },
  };
}

function traced(clients: readonly unknown[]): void {
  for (const client of clients) {
    (client as AwsClients["sqs"]).middlewareStack.add(
      (next) => (step) => {
        const trace = currentTrace();
        if (trace !== undefined) {
          (step.request as { readonly headers: Record<string, string> }).headers["x-amzn-trace-id"] = trace;
        }
        return next(step);
      },
      { step: "build", name: "traceHeader" },
    );
  }
}
