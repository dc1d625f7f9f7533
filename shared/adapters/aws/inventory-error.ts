import { EKSServiceException } from "@aws-sdk/client-eks";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, rawMessage, StarlingError } from "#shared/base/errors.ts";

/**
 * Errors that a service returns for a session that is valid in other regions: the region is not enabled for the
 * account.
 */
export const regionOff: ReadonlySet<string> = new Set([
  "UnrecognizedClientException",
  "InvalidClientTokenId",
  "InvalidClientTokenIdException",
  "OptInRequired",
  "AuthFailure",
]);
const denied: ReadonlySet<string> = new Set(["AccessDeniedException", "AccessDenied", "UnauthorizedOperation"]);
const throttled: ReadonlySet<string> = new Set([
  "ThrottlingException",
  "ThrottledException",
  "Throttling",
  "TooManyRequestsException",
]);

export function isMissingInEks(error: unknown): boolean {
  return error instanceof EKSServiceException && error.name === "ResourceNotFoundException";
}

/** Converts an error of a service: `RegionOff`, `AccountDenied`, `AccountThrottled`, `AccountUnavailable`. */
export function inventoryError(
  error: unknown,
  asked: {
    readonly place: { readonly account: string; readonly region: string };
    readonly role: string;
    readonly action: string;
  },
): StarlingError {
  if (error instanceof StarlingError) return error;
  const { place, role, action } = asked;
  const name = error instanceof Error ? error.name : "";
  const failure = (code: ErrorCode, message: string) =>
    new StarlingError(message, { code, retry: "transient", data: { ...place }, cause: error });
  if (regionOff.has(name)) {
    return failure(
      "RegionOff",
      `${place.region} is not enabled for account ${place.account}; enable it there, or remove it from regions`,
    );
  }
  if (denied.has(name)) return failure("AccountDenied", `allow ${action} to the role ${role} (${rawMessage(error)})`);
  if (throttled.has(name))
    return failure("AccountThrottled", `the account throttles ${action}: ${name}; Starling tries again`);
  return failure("AccountUnavailable", `${action} was not answered: ${errorMessage(error)}`);
}
