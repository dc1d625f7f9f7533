import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { type EksArn, stsHost } from "#shared/fleet/eks-arn.ts";

export interface SigningCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** The limit of aws-iam-authenticator (`maxTokenLenBytes` in pkg/token/token.go). */
const maxTokenBytes = 4096;
/** STS ignores the value and accepts the URL for 15 minutes. Authenticators up to 0.3.0 require 0 to 60. */
const expiresSeconds = 60;

/**
 * The bearer token of an EKS cluster: a presigned GetCallerIdentity of the cluster's region, bound to the cluster by a
 * signed header. It is made locally without a request. It is valid for 15 minutes from `now`, as long as the
 * credentials are.
 *
 * `getSignedUrl` is not used, because it adds `X-Amz-Content-Sha256`, which no verifier accepts.
 *
 * @throws StarlingError `TokenTooLarge` when the session token of the credentials is too long.
 */
export async function eksToken(
  cluster: Pick<EksArn, "arn" | "partition" | "region" | "name">,
  credentials: SigningCredentials,
  now: Date,
): Promise<string> {
  const hostname = stsHost(cluster);
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const signer = new SignatureV4({
    credentials: { accessKeyId, secretAccessKey, ...defined({ sessionToken }) },
    region: cluster.region,
    service: "sts",
    sha256: Sha256,
  });
  const { query = {} } = await signer.presign(
    {
      method: "GET",
      protocol: "https:",
      hostname,
      path: "/",
      query: { Action: "GetCallerIdentity", Version: "2011-06-15" },
      headers: { host: hostname, "x-k8s-aws-id": cluster.name },
    },
    { expiresIn: expiresSeconds, signingDate: now, unhoistableHeaders: new Set(["x-k8s-aws-id"]) },
  );
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  const url = `https://${hostname}/?${pairs.join("&")}`;
  const token = `k8s-aws-v1.${Buffer.from(url).toString("base64url")}`;
  if (token.length < maxTokenBytes) return token;
  throw new StarlingError(
    `the token for ${cluster.arn} would have ${token.length} bytes, and the limit of EKS is ${maxTokenBytes}, because the session token is too long; give the role's sessions fewer session tags and no inline session policy`,
    { code: "TokenTooLarge", retry: "permanent", data: { arn: cluster.arn, bytes: token.length, maxTokenBytes } },
  );
}
