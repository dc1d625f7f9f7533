import type { Refused, SignatureFault } from "#local/aws/iam/sigv4-verifier.ts";
import type { AwsService } from "#local/aws/wire/aws-call.ts";
import { jsonReply, restJsonError, s3Error } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";

interface Wording {
  readonly code: string;
  readonly message: string;
}

const mismatch =
  "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";
const invalidToken = "The security token included in the request is invalid.";

/** The errors of services with a JSON protocol. */
const jsonWordings = {
  missing: { code: "MissingAuthenticationTokenException", message: "Request is missing Authentication Token" },
  malformed: { code: "IncompleteSignatureException", message: "The Authorization header is not complete." },
  "wrong scope": { code: "InvalidSignatureException", message: "Credential should be scoped to a valid region." },
  "unknown key": { code: "UnrecognizedClientException", message: invalidToken },
  "wrong token": { code: "UnrecognizedClientException", message: invalidToken },
  expired: { code: "ExpiredTokenException", message: "The security token included in the request is expired" },
  "clock skew": { code: "InvalidSignatureException", message: "Signature expired, or not yet current." },
  "unsigned header": { code: "InvalidSignatureException", message: mismatch },
  mismatch: { code: "InvalidSignatureException", message: mismatch },
  "wrong digest": { code: "InvalidSignatureException", message: mismatch },
  "too large": { code: "RequestEntityTooLargeException", message: "The request is too large." },
} as const satisfies Readonly<Record<SignatureFault, Wording>>;

/** The errors of services with the Query protocol: STS and CloudFormation. */
export function queryRefusal({ fault, reason }: Refused): Wording {
  switch (fault) {
    case "missing":
      return { code: "MissingAuthenticationToken", message: "Request is missing Authentication Token" };
    case "unknown key":
    case "wrong token":
      return { code: "InvalidClientTokenId", message: "The security token included in the request is invalid." };
    case "expired":
      return { code: "ExpiredToken", message: "The security token included in the request is expired" };
    default:
      return { code: "SignatureDoesNotMatch", message: reason };
  }
}

const s3Wordings = {
  missing: { status: 403, code: "AccessDenied", message: "Access Denied" },
  malformed: { status: 400, code: "AuthorizationHeaderMalformed", message: "The authorization header is malformed." },
  "wrong scope": {
    status: 400,
    code: "AuthorizationHeaderMalformed",
    message: "The authorization header that you provided is not valid: its scope is another one.",
  },
  "unknown key": {
    status: 403,
    code: "InvalidAccessKeyId",
    message: "The AWS Access Key Id you provided does not exist in our records.",
  },
  "wrong token": {
    status: 400,
    code: "InvalidToken",
    message: "The provided token is malformed or otherwise invalid.",
  },
  expired: { status: 400, code: "ExpiredToken", message: "The provided token has expired." },
  "clock skew": {
    status: 403,
    code: "RequestTimeTooSkewed",
    message: "The difference between the request time and the current time is too large.",
  },
  "unsigned header": {
    status: 403,
    code: "AccessDenied",
    message: "There were headers present in the request which were not signed",
  },
  mismatch: {
    status: 403,
    code: "SignatureDoesNotMatch",
    message:
      "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
  },
  "wrong digest": {
    status: 400,
    code: "XAmzContentSHA256Mismatch",
    message: "The provided 'x-amz-content-sha256' header does not match what was computed.",
  },
  "too large": {
    status: 400,
    code: "EntityTooLarge",
    message: "Your proposed upload exceeds the maximum allowed object size.",
  },
} as const satisfies Readonly<Record<SignatureFault, Wording & { readonly status: number }>>;

/** Services with AWS's JSON protocol that no fault proxy stands before, by their names in signatures. */
export type JsonService = "secretsmanager" | "logs" | "monitoring" | "events";

/** The service's answer to a request without a valid signature. The answer does not contain the reason. */
export function refusalReply(service: AwsService | JsonService, { fault }: Pick<Refused, "fault">): HttpReply {
  const reply = service === "s3" ? s3Error(s3Wordings[fault]) : jsonRefusal(service, fault);
  // The rest of the request is not read.
  return { ...reply, headers: { ...reply.headers, connection: "close" } };
}

function jsonRefusal(service: Exclude<AwsService, "s3"> | JsonService, fault: SignatureFault): HttpReply {
  const { code, message } = jsonWordings[fault];
  if (service === "lambda") return restJsonError(fault === "too large" ? 413 : 403, code, message);
  const status = fault === "too large" ? 413 : service === "sqs" && fault !== "expired" ? 403 : 400;
  return jsonReply(status, { __type: `com.amazon.coral.service#${code}`, message });
}
