import type { IncomingMessage } from "node:http";
import { isPresigned, verifyPresigned } from "#local/aws/iam/presigned-url.ts";
import type { Principals } from "#local/aws/iam/principals.ts";
import { type Verdict, verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import type { AwsService } from "#local/aws/wire/aws-call.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

const MiB = 1024 * 1024;
/** Larger than the largest request of each service. */
const maxBodyBytes = {
  dynamodb: 32 * MiB,
  sqs: 2 * MiB,
  s3: 5 * 1024 * MiB,
  lambda: 6 * MiB,
} as const satisfies Record<AwsService, number>;

/**
 * Whether a principal signed the request, in its header or, for S3, in its query. The body is read only if that is so.
 */
export async function verifyCall(
  service: AwsService,
  request: IncomingMessage,
  principals: Pick<Principals, "find">,
): Promise<Verdict> {
  const { method = "GET", url = "/", headers } = request;
  const arrived = { method, url, headers, body: () => readBytesUpTo(maxBodyBytes[service], request) };
  const now = () => new Date();
  if (service === "s3" && isPresigned(url)) return verifyPresigned(arrived, { principals, service, now: now() });
  return verifySigV4(arrived, { principals, service, now });
}
