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
  /** What the profile or the environment says when left out. */
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
 * What a stack puts out, asked of CloudFormation with the profile's own credentials.
 * @throws CliFailure when it is not there, may not be seen, or cannot be asked for.
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
    throw usageFailure("which region? neither AWS_REGION nor the profile names one", "add --region REGION");
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
    // What ends it is the command's own --timeout, or Ctrl-C.
    if (name === "AbortError" || name === "TimeoutError") throw error;
    const message = errorMessage(error);
    const where = `${region}${profile === undefined ? "" : `, profile ${profile}`}`;
    if (name === "ValidationError" && message.includes("does not exist")) {
      throw new CliFailure(`there is no stack ${stack} (${where})`, {
        exit: "unknown",
        next: `aws cloudformation describe-stacks --region ${quoted(region)} --query "Stacks[].StackName"   (another region, or --profile?)`,
      });
    }
    const next =
      name === "AccessDenied"
        ? "ask for cloudformation:DescribeStacks, or give its output ApiUrl: starling context add NAME --url URL"
        : `aws sts get-caller-identity${profile === undefined ? "" : ` --profile ${quoted(profile)}`}   (are these the right credentials?)`;
    throw new CliFailure(`cannot ask CloudFormation for stack ${stack} (${where}): ${message}`, {
      exit: "unknown",
      next,
    });
  }
}
