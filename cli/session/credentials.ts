import type { AwsKeys } from "#cli/session/api-client.ts";
import type { NamedContext } from "#cli/session/contexts.ts";
import { CliFailure } from "#cli/session/failure.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/**
 * The credentials that sign requests: of `--profile`, or of the context, or of the SDK's default chain. If the context names a
 * role, they assume it.
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
        next: "aws sts get-caller-identity   (the role must trust this principal)",
      });
    }
  };
}

/** The credentials without the context's role, which serves only the API: of `--profile`, the context, or the SDK's default chain. */
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

/** The credentials of a profile, or of the SDK's default chain. */
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

/** The command that gets credentials. For a profile that does not exist: the command that lists profiles. */
function loginOf(profile: string | undefined, error: unknown): string {
  if (profile === undefined) return "aws sso login, or add --profile NAME";
  const isMissing = errorMessage(error).startsWith("Could not resolve credentials using profile");
  return isMissing ? "aws configure list-profiles" : `aws sso login --profile ${quoted(profile)}`;
}
