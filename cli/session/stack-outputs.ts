import type { CloudFormationClient, Stack } from "@aws-sdk/client-cloudformation";
import { profileCredentials } from "#cli/session/credentials.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

export interface StackQuestion {
  /** Name or ARN. */
  readonly stack: string;
  readonly profile?: string;
  /** Absent: the region of the profile or the environment. */
  readonly region?: string;
  readonly signal: AbortSignal;
}

export interface StackAnswer {
  readonly region: string;
  /** E.g. `CREATE_COMPLETE`. */
  readonly status: string;
  readonly outputs: Readonly<Record<string, string>>;
}

/**
 * Reads the outputs of a stack from CloudFormation with the profile's own credentials.
 * @throws CliFailure when the stack does not exist, or CloudFormation refuses or does not answer.
 */
export async function stackOutputs({ stack, profile, region, signal }: StackQuestion): Promise<StackAnswer> {
  const { CloudFormationClient, DescribeStacksCommand } = await import("@aws-sdk/client-cloudformation");
  const credentials = profileCredentials(profile);
  const client = new CloudFormationClient({ ...defined({ profile, region }), credentials });
  try {
    const asked = { stack, region: await regionOf(client), ...defined({ profile }) };
    const { Stacks: [found] = [] } = await answered(asked, () =>
      client.send(new DescribeStacksCommand({ StackName: stack }), { abortSignal: signal }),
    );
    return { region: asked.region, status: found?.StackStatus ?? "missing", outputs: outputsOf(found) };
  } finally {
    client.destroy();
  }
}

function outputsOf(found: Stack | undefined): Readonly<Record<string, string>> {
  const given = (found?.Outputs ?? []).map(({ OutputKey = "", OutputValue = "" }) => [OutputKey, OutputValue]);
  return Object.fromEntries(given) as Readonly<Record<string, string>>;
}

async function regionOf(client: CloudFormationClient): Promise<string> {
  try {
    return await client.config.region();
  } catch {
    throw usageFailure("no region is given, and neither AWS_REGION nor the profile has one", "add --region REGION");
  }
}

interface Asked {
  readonly stack: string;
  readonly region: string;
  readonly profile?: string;
}

async function answered<T>({ stack, region, profile }: Asked, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    const { name } = error as Error;
    // --timeout or Ctrl-C ended the call.
    if (name === "AbortError" || name === "TimeoutError") throw error;
    const message = errorMessage(error);
    const where = `${region}${profile === undefined ? "" : `, profile ${profile}`}`;
    if (name === "ValidationError" && message.includes("does not exist")) {
      throw new CliFailure(`there is no stack ${stack} (${where})`, {
        exit: "unknown",
        next: `aws cloudformation describe-stacks --region ${quoted(region)} --query "Stacks[].StackName"   (or try another --region or --profile)`,
      });
    }
    const next =
      name === "AccessDenied"
        ? "starling context add NAME --url URL, with output ApiUrl of the stack   (or get cloudformation:DescribeStacks)"
        : `aws sts get-caller-identity${profile === undefined ? "" : ` --profile ${quoted(profile)}`}   (check the credentials)`;
    throw new CliFailure(`CloudFormation does not give stack ${stack} (${where}): ${message}`, {
      exit: "unknown",
      next,
    });
  }
}
