import type { AwsCall } from "#local/aws/aws-call.ts";
import { jsonReply, s3Error } from "#local/aws/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/emulator-client.ts";
import type { FaultContext } from "#local/aws/fault-context.ts";
import type { Principals } from "#local/aws/principals.ts";

const expiredText = "The security token included in the request is expired";

/** Refuses calls under temporary credentials that have expired, and lets some expire early. */
export function refuseExpired(
  call: AwsCall,
  { context, principals }: { readonly context: FaultContext; readonly principals: Principals | undefined },
): HttpReply | undefined {
  const accessKey = principals?.find(accessKeyIdOf(call) ?? "");
  if (accessKey?.sessionToken === undefined) return undefined;
  const { random, faults, injected } = context;
  if (random.chance(faults()[call.service].expiredCredentials)) {
    injected(`${call.service}:expiredCredentials`);
    principals?.expire(accessKey.accessKeyId);
  } else if (accessKey.expiresAt === undefined || accessKey.expiresAt.getTime() > Date.now()) {
    return undefined;
  }
  if (call.service === "s3") {
    return s3Error({ status: 400, code: "ExpiredToken", message: "The provided token has expired." });
  }
  return jsonReply(400, { __type: "com.amazon.coral.service#ExpiredTokenException", message: expiredText });
}

/** Of the request's signature; undefined where it is not signed. */
export function accessKeyIdOf({ http }: Pick<AwsCall, "http">): string | undefined {
  return /Credential=([^/\s,]+)\//.exec(http.headers.authorization ?? "")?.[1];
}
