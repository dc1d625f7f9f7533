/**
 * The checks of a cluster token by EKS, in their order. They follow pkg/token/token.go of kubernetes-sigs/
 * aws-iam-authenticator as of 2026-07-14, and so do the messages.
 */

import { request } from "node:http";
import { text } from "node:stream/consumers";
import { canonicalArn, sessionNameOf } from "#local/aws/iam/principal-arns.ts";
import { defined } from "#shared/base/defined.ts";

export interface EksVerifierOptions {
  /** The cluster name. Tokens are bound to it as the cluster id. */
  readonly clusterName: string;
  /** The partition of the cluster. */
  readonly partition: string;
  readonly region: string;
  /** The local STS. Requests to it carry the Host header of the token, so that the signature stays valid. */
  readonly stsEndpoint: string;
  readonly now: () => Date;
}

export interface EksIdentity {
  /** The ARN as STS gives it. */
  readonly arn: string;
  readonly canonicalArn: string;
  readonly accountId: string;
  readonly userId: string;
  /** Set for an assumed role. */
  readonly sessionName?: string;
  readonly accessKeyId: string;
}

/** A refused token, in the words of the authenticator. */
class EksTokenRefusal extends Error {}

const prefix = "k8s-aws-v1.";
const maxTokenBytes = 4096;
const clusterIdHeader = "x-k8s-aws-id";
const lifetimeMinutes = 15;
const stsTimeoutMs = 10_000;

const allowedParameters: ReadonlySet<string> = new Set([
  "action",
  "version",
  "x-amz-algorithm",
  "x-amz-credential",
  "x-amz-date",
  "x-amz-expires",
  "x-amz-security-token",
  "x-amz-signature",
  "x-amz-signedheaders",
]);

/** @throws EksTokenRefusal with the rule that the token breaks. */
export async function verifyEksToken(token: string, options: EksVerifierOptions): Promise<EksIdentity> {
  if (token.length > maxTokenBytes) throw refusal("token is too large");
  if (!token.startsWith(prefix)) throw refusal(`token is missing expected "${prefix}" prefix`);
  const url = urlIn(token.slice(prefix.length));
  if (url.scheme !== "https") throw refusal(`unexpected scheme "${url.scheme}" in pre-signed URL`);
  checkHost(url.host, options);
  if (url.path !== "/") throw refusal("unexpected path in pre-signed URL");
  const parameters = parametersIn(url.query);
  const value = (name: string) => parameters.get(name) ?? "";
  if (value("action") !== "GetCallerIdentity") throw refusal("unexpected action parameter in pre-signed URL");
  const signed = value("x-amz-signedheaders").toLowerCase().split(";");
  if (!signed.includes(clusterIdHeader)) {
    throw refusal(`client did not sign the ${clusterIdHeader} header in the pre-signed URL`);
  }
  const expires = value("x-amz-expires");
  if (!/^[+-]?\d+$/.test(expires) || Number(expires) < 0 || Number(expires) > 900) {
    throw refusal(`invalid X-Amz-Expires parameter in pre-signed URL: ${expires}`);
  }
  checkDate(value("x-amz-date"), options.now());
  const identity = await askSts(`/?${url.query}`, { host: url.host, ...options });
  return { ...identity, accessKeyId: value("x-amz-credential").split("/")[0] ?? "" };
}

function refusal(message: string): EksTokenRefusal {
  return new EksTokenRefusal(message);
}

interface TokenUrl {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

/** Go's `base64.RawURLEncoding` refuses padding, and `url.Parse` keeps path and host unchanged. */
function urlIn(encoded: string): TokenUrl {
  if (!/^[A-Za-z0-9_-]*$/.test(encoded) || encoded.length % 4 === 1) throw refusal("illegal base64 data");
  const parts = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?/.exec(
    Buffer.from(encoded, "base64url").toString(),
  );
  if (parts === null) throw refusal("missing protocol scheme");
  const [, scheme = "", host = "", path = "", query = ""] = parts;
  return { scheme: scheme.toLowerCase(), host, path, query };
}

/** The partitions with the regions that the SDK assigns to each, and the domains of their STS. */
const partitions = [
  { name: "aws-cn", regions: /^cn-\w+-\d+$/, domain: "amazonaws.com.cn", dualStack: "api.amazonwebservices.com.cn" },
  { name: "aws-us-gov", regions: /^us-gov-\w+-\d+$/, domain: "amazonaws.com", dualStack: "api.aws" },
  { name: "aws", regions: /^(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+$/, domain: "amazonaws.com", dualStack: "api.aws" },
] as const;

function checkHost(host: string, verifier: EksVerifierOptions): void {
  if (host === "sts.amazonaws.com") {
    if (verifier.partition === "aws") return;
    throw refusal(`global endpoint unsupported in partition ${verifier.partition}`);
  }
  const labels = host.split(".");
  if (labels.length < 3) throw refusal(`could not parse region for pre-signed URL ${host}`);
  const region = labels[1] ?? "";
  if (!/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/.test(region)) {
    throw refusal(`invalid region identifier format provided: ${region}`);
  }
  const known = partitions.find(({ regions }) => regions.test(region)) ?? partitions[2];
  const own = partitions.find(({ name }) => name === verifier.partition);
  if (!hostsOf(region, known).includes(host)) {
    if (own !== undefined && hostsOf(verifier.region, own).includes(host)) return;
    throw refusal(`unexpected hostname "${host}" in pre-signed URL`);
  }
  const domain = labels.slice(2).join(".");
  if (domain !== own?.domain && domain !== own?.dualStack) {
    throw refusal(`partition {${verifier.partition}} does not support hostname ${host}`);
  }
}

/** The plain, the FIPS and the dual-stack hosts, and FIPS with dual stack. */
function hostsOf(region: string, { domain, dualStack }: (typeof partitions)[number]): readonly string[] {
  return ["sts", "sts-fips"].flatMap((service) => [
    `${service}.${region}.${domain}`,
    `${service}.${region}.${dualStack}`,
  ]);
}

/**
 * The query parameters by lower-case name. Names that differ only in case would be one parameter here and two in STS
 * (CVE-2022-2385), so they are refused.
 */
function parametersIn(query: string): ReadonlyMap<string, string> {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&").filter((part) => part !== "")) {
    const [name = "", value = ""] = pair.split(/=(.*)/s).map(unescaped);
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const lower = new Map<string, string>();
  for (const name of values.keys()) {
    if (lower.has(name.toLowerCase())) throw refusal(`duplicate query parameter found: "${name}"`);
    lower.set(name.toLowerCase(), "");
  }
  for (const [name, each] of values) {
    if (!allowedParameters.has(name.toLowerCase())) throw refusal(`non-whitelisted query parameter "${name}"`);
    if (each.length !== 1) throw refusal("query parameter with multiple values not supported");
    lower.set(name.toLowerCase(), each[0] ?? "");
  }
  return lower;
}

function unescaped(text: string): string {
  if (text.includes(";")) throw refusal("malformed query parameter");
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw refusal("malformed query parameter");
  }
}

function checkDate(date: string, now: Date): void {
  if (date === "") throw refusal("X-Amz-Date parameter must be present in pre-signed URL");
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  const at = parts === null ? Number.NaN : Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
  if (Number.isNaN(at)) throw refusal(`error parsing X-Amz-Date parameter ${date} into format 20060102T150405Z`);
  if (now.getTime() > at + lifetimeMinutes * 60_000) {
    throw refusal(`X-Amz-Date parameter is expired (${lifetimeMinutes} minute expiration) ${date}`);
  }
}

interface StsQuestion {
  readonly host: string;
  readonly clusterName: string;
  readonly stsEndpoint: string;
}

interface StsAnswer {
  readonly GetCallerIdentityResponse?: {
    readonly GetCallerIdentityResult?: { readonly Arn: string; readonly Account: string; readonly UserId: string };
  };
}

/** The header always names this cluster, so that a token for another cluster has a wrong signature. */
async function askSts(
  path: string,
  { host, clusterName, stsEndpoint }: StsQuestion,
): Promise<Omit<EksIdentity, "accessKeyId">> {
  const { status, body } = await get(new URL(path, stsEndpoint), {
    host,
    [clusterIdHeader]: clusterName,
    accept: "application/json",
  });
  if (status !== 200) throw refusal(`error from AWS (expected 200, got ${status}) on ${host} endpoint. Body: ${body}`);
  const result = (JSON.parse(body) as StsAnswer).GetCallerIdentityResponse?.GetCallerIdentityResult;
  if (result === undefined) throw refusal("STS returned no identity");
  const sessionName = sessionNameOf(result.Arn);
  return {
    arn: result.Arn,
    canonicalArn: canonicalArn(result.Arn),
    accountId: result.Account,
    userId: sessionName === undefined ? result.UserId : (result.UserId.split(":")[0] ?? ""),
    ...defined({ sessionName }),
  };
}

/** A redirect is an answer; it is not followed. */
function get(
  url: URL,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(refusal(`error during GET: ${error.message}`));
    const sent = request(url, { headers, signal: AbortSignal.timeout(stsTimeoutMs) }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), fail);
    });
    sent.on("error", fail);
    sent.end();
  });
}
