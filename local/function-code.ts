/** The code of each function by its folder, as its handler.ts puts it together. */
import type { z } from "zod";
import { apiEnv } from "#functions/api/env.ts";
import { wireApi } from "#functions/api/wire.ts";
import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
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
import type { LambdaHandler } from "#local/aws/lambda-context.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

/** @throws Error naming every variable that is missing or malformed. */
export type WireFunction = (
  variables: Readonly<Record<string, string>>,
  aws: AwsClients,
  options: WireOptions,
) => LambdaHandler;

const wires: Readonly<Record<string, WireFunction>> = {
  api: wiring(apiEnv, wireApi),
  webhook: wiring(webhookEnv, wireWebhook),
  tick: wiring(tickEnv, wireTick),
  resolve: wiring(resolveEnv, wireResolve),
  rollout: wiring(rolloutEnv, wireRollout),
  render: wiring(renderEnv, wireRender),
  apply: wiring(applyEnv, wireApply),
  report: wiring(reportEnv, wireReport),
};

/** @throws Error when no function has that folder. */
export function functionCode(folder: string): WireFunction {
  const wire = wires[folder];
  if (wire !== undefined) return wire;
  throw new Error(`functions/${folder} is no function that this machine can run; add it to local/function-code.ts`);
}

function wiring<Env>(
  schema: z.ZodType<Env>,
  wire: (env: Env, aws: AwsClients, options: WireOptions) => unknown,
): WireFunction {
  return (variables, aws, options) => wire(parseEnv(schema, variables), aws, options) as LambdaHandler;
}
