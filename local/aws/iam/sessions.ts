import type { Principals } from "#local/aws/iam/principals.ts";
import { refusalReply } from "#local/aws/iam/signature-refusals.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext } from "#local/aws/wire/fault-context.ts";

/** Expires some temporary credentials early, and refuses the call that used them. */
export function expireEarly(
  call: AwsCall,
  { context, principals }: { readonly context: FaultContext; readonly principals: Principals },
): HttpReply | undefined {
  const accessKey = principals.find(accessKeyIdOf(call) ?? "");
  if (accessKey?.sessionToken === undefined) return undefined;
  const { random, faults, injected } = context;
  if (!random.chance(faults()[call.service].expiredCredentials)) return undefined;
  injected(`${call.service}:expiredCredentials`);
  principals.expire(accessKey.accessKeyId);
  return refusalReply(call.service, { fault: "expired" });
}

/** The access key id in a request's signature; undefined where the request is not signed. */
export function accessKeyIdOf({ http }: Pick<AwsCall, "http">): string | undefined {
  return /Credential=([^/\s,]+)\//.exec(http.headers.authorization ?? "")?.[1];
}
