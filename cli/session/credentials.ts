import type { AwsKeys } from "#cli/session/api-client.ts";
import type { NamedContext } from "#cli/session/contexts.ts";
import { CliFailure } from "#cli/session/failure.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/**
 * Whom requests are signed as: `profile` (of `--profile`), else what the context says, else the SDK's default chain; and
 * where the context names a role, a session of it.
 */
export function credentialsOf({ name, context }: NamedContext, profile: string | undefined): () => Promise<AwsKeys> {
  const own = ownCredentials(context.credentials, profile);
  const { role, region, sts } = context;
  if (role === undefined) return own;
  return async () => {
    const { fromTemporaryCredentials } = await import("@aws-sdk/credential-providers");
    const params = { RoleArn: role, RoleSessionName: "starling" };
    const clientConfig = { region, ...defined({ endpoint: sts }) };
    const session = fromTemporaryCredentials({ params, masterCredentials: await own(), clientConfig });
    try {
      return await session();
    } catch (error) {
      throw new CliFailure(`cannot assume role ${role} of context ${name}: ${errorMessage(error)}`, {
        exit: "unknown",
        next: "aws sts get-caller-identity   (does the role trust this principal?)",
      });
    }
  };
}

/** Of `--profile`, else what the context says, else the SDK's default chain; the context's role is for the API alone. */
export function ownCredentials(
  given: NamedContext["context"]["credentials"],
  profileFlag: string | undefined,
): () => Promise<AwsKeys> {
  if (profileFlag === undefined && given !== undefined && "accessKeyId" in given) {
    const { accessKeyId, secretAccessKey, sessionToken } = given;
    return async () => ({ accessKeyId, secretAccessKey, ...defined({ sessionToken }) });
  }
  return profileCredentials(profileFlag ?? (given !== undefined && "profile" in given ? given.profile : undefined));
}

/** Those of a profile, or what the SDK's default chain finds. */
export function profileCredentials(profile: string | undefined): () => Promise<AwsKeys> {
  return async () => {
    const { fromIni, fromNodeProviderChain } = await import("@aws-sdk/credential-providers");
    try {
      return await (profile === undefined ? fromNodeProviderChain() : fromIni({ profile }))();
    } catch (error) {
      throw new CliFailure(`no AWS credentials: ${errorMessage(error)}`, {
        exit: "unknown",
        next: loginOf(profile, error),
      });
    }
  };
}

/** A profile that is not there is one of another name. */
function loginOf(profile: string | undefined, error: unknown): string {
  if (profile === undefined) return "aws sso login, or add --profile NAME";
  const isMissing = errorMessage(error).startsWith("Could not resolve credentials using profile");
  return isMissing ? "aws configure list-profiles" : `aws sso login --profile ${quoted(profile)}`;
}
