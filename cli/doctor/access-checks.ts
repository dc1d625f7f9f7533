import type { STSClient } from "@aws-sdk/client-sts";
import { type Check, type CheckOutcome, once } from "#cli/doctor/checks.ts";
import { type Probed, probe } from "#cli/doctor/probe.ts";
import { invokePolicy, permissionCommand } from "#cli/doctor/remedies.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { chooseContext, type NamedContext } from "#cli/session/contexts.ts";
import { credentialsOf } from "#cli/session/credentials.ts";
import { isOnLoopback, regionInName } from "#cli/session/endpoint-names.ts";
import { CliFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/** AWS refuses requests whose time differs more from its own. */
const maxSkewSeconds = 300;

/** The description of an alarm names its section of the runbook. */
const alarms =
  'aws cloudwatch describe-alarms --state-value ALARM --query "MetricAlarms[].[AlarmName,AlarmDescription]" --output table';

/** Checks the way from this machine to the API: context, credentials, endpoint, clock and permission. */
export function accessChecks(session: Session): readonly Check[] {
  const chosen = once(async () => chooseContext(session.io, session.options.context));
  const probed = once(async () => probeContext(session, await chosen()));
  const caller = once(async () => callerOf(session, await chosen()));
  return [
    { name: "context", run: async () => checkContext(session, chosen) },
    { name: "credentials", needs: ["context"], run: async () => checkCredentials(session, await chosen(), caller) },
    { name: "endpoint", needs: ["context"], run: async () => checkEndpoint(session, await chosen(), probed) },
    { name: "clock", needs: ["endpoint"], run: async () => checkClock(session, await probed()) },
    {
      name: "permission",
      needs: ["endpoint", "clock"],
      unlessWrong: ["credentials"],
      run: async () => checkPermission(session, await chosen(), caller),
    },
  ];
}

async function checkContext(session: Session, chosen: () => Promise<NamedContext>): Promise<CheckOutcome> {
  try {
    const { name, context } = await chosen();
    const { endpoint, region, stack } = context;
    const found = [`${name}: ${endpoint}`, region, ...(stack === undefined ? [] : [`stack ${stack}`])].join(", ");
    const named = regionInName(endpoint);
    const signsFor = session.options.region ?? region;
    if (named === undefined || named === signsFor) return { state: "ok", found };
    const problem = `requests are signed for ${signsFor}, but the endpoint is in ${named}`;
    return {
      state: "wrong",
      found,
      problem,
      remedy: `starling context add ${quoted(name)} --url ${quoted(endpoint)} --region ${named}`,
    };
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return { state: "wrong", found: "none", problem: error.message, remedy: error.next ?? "starling context list" };
  }
}

interface Caller {
  readonly arn: string;
}

async function callerOf(session: Session, chosen: NamedContext): Promise<Caller> {
  const { GetCallerIdentityCommand, STSClient } = await import("@aws-sdk/client-sts");
  const credentials = await credentialsOf(chosen, session.options.profile)();
  const { region, sts } = chosen.context;
  const client: STSClient = new STSClient({ region, credentials, ...defined({ endpoint: sts }) });
  try {
    const { Arn = "" } = await client.send(new GetCallerIdentityCommand({}), { abortSignal: session.signal });
    return { arn: Arn };
  } finally {
    client.destroy();
  }
}

/** STS's error codes for keys that are not valid, and what they mean. */
const refusedKeys: Readonly<Record<string, string>> = {
  ExpiredToken: "the credentials have expired",
  ExpiredTokenException: "the credentials have expired",
  InvalidClientTokenId: "AWS does not know the access key: it was deleted, or belongs to another partition",
  SignatureDoesNotMatch: "the secret key does not belong to the access key",
};

async function checkCredentials(
  session: Session,
  chosen: NamedContext,
  caller: () => Promise<Caller>,
): Promise<CheckOutcome> {
  try {
    return { state: "ok", found: (await caller()).arn };
  } catch (error) {
    const keys = keysOf(session, chosen);
    if (error instanceof CliFailure) {
      return { state: "wrong", found: keys.found, problem: error.message, remedy: error.next ?? keys.remedy };
    }
    const problem = refusedKeys[(error as Error).name];
    if (problem === undefined) return { state: "unchecked", because: `STS does not answer: ${errorMessage(error)}` };
    return { state: "wrong", ...keys, problem };
  }
}

/** The origin of the keys, and the command that gets new ones. */
function keysOf(
  session: Session,
  { name, context }: NamedContext,
): { readonly found: string; readonly remedy: string } {
  const { credentials, endpoint, region } = context;
  const { profile } = session.options;
  if (profile === undefined && credentials !== undefined && "accessKeyId" in credentials) {
    const remedy = isOnLoopback(endpoint)
      ? "starling local up"
      : `starling context add ${name} --url ${endpoint} --region ${region} --profile NAME`;
    return { found: `key ${credentials.accessKeyId} of context ${name}`, remedy };
  }
  const named = profile ?? (credentials !== undefined && "profile" in credentials ? credentials.profile : undefined);
  return named === undefined
    ? { found: "the SDK's default chain", remedy: "aws sso login, or add --profile NAME" }
    : { found: `profile ${named}`, remedy: `aws sso login --profile ${named}` };
}

function probeContext({ signal }: Session, { context }: NamedContext): Promise<Probed> {
  const url = new URL(`${context.endpoint.replace(/\/$/, "")}/v1/version`);
  return probe(url, { signal, ...defined({ ca: context.caData }) });
}

async function checkEndpoint(
  { signal }: Session,
  { name, context }: NamedContext,
  probed: () => Promise<Probed>,
): Promise<CheckOutcome> {
  const { endpoint, region, stack = "STACK" } = context;
  const remedy = isOnLoopback(endpoint)
    ? "starling local up"
    : `starling context remove ${name}; starling context add ${name} --stack ${stack} --region ${region}`;
  try {
    const { status, milliseconds } = await probed();
    const found = `${status} in ${milliseconds} ms`;
    // The API refuses a request without a signature. No other address answers with exactly these codes.
    if (status === 401 || status === 403 || status === 429 || status >= 500) return { state: "ok", found };
    return { state: "wrong", found, problem: `${endpoint} is not the API of an installation`, remedy };
  } catch (error) {
    if (signal.aborted) throw error;
    const code: unknown = (error as NodeJS.ErrnoException).code;
    const found = typeof code === "string" ? code : "no answer";
    return { state: "wrong", found, problem: `no answer from ${endpoint}: ${errorMessage(error)}`, remedy };
  }
}

function checkClock({ io }: Session, { date }: Probed): CheckOutcome {
  if (date === undefined) return { state: "unchecked", because: "the endpoint's answer has no date" };
  const skew = Math.round((io.now().getTime() - date.getTime()) / 1000);
  const found = Math.abs(skew) <= 1 ? "exact" : `${Math.abs(skew)} s ${skew < 0 ? "behind" : "ahead"}`;
  if (Math.abs(skew) < maxSkewSeconds) return { state: "ok", found };
  const problem = `AWS refuses requests whose time differs by ${maxSkewSeconds} s or more from its own`;
  return { state: "wrong", found, problem, remedy: "sudo chronyc makestep" };
}

async function checkPermission(
  session: Session,
  { context }: NamedContext,
  caller: () => Promise<Caller>,
): Promise<CheckOutcome> {
  try {
    const { principal } = await session.api.call<{ principal: string }>({ method: "GET", path: "/v1/whoami" });
    return { state: "ok", found: principal };
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const status = error instanceof ApiFailure ? error.status : undefined;
    if (status === 403 || status === 401) {
      const arn = await caller().then(
        (known) => known.arn,
        () => undefined,
      );
      const policy = invokePolicy(context.endpoint);
      const { stack, region } = context;
      const viewerOf = stack === undefined ? undefined : { stack, region };
      const who = arn ?? "this principal";
      const problem = `${who} may not execute-api:Invoke on ${policy.resource}`;
      return {
        state: "wrong",
        found: String(status),
        problem,
        remedy: permissionCommand(arn, { ...policy, viewerOf }),
      };
    }
    const found = status === undefined ? "no answer" : String(status);
    return { state: "wrong", found, problem: error.message, remedy: alarms };
  }
}
