/** Signs in to repositories of AWS as Starling's own role, without a secret. */

import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import { LRUCache } from "lru-cache";
import * as z from "zod";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import type { SigningCredentials } from "#shared/adapters/aws/eks-token.ts";
import { gitSignature } from "#shared/adapters/aws/git-signature.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { jsonOf } from "#shared/base/json-of.ts";
import { partitionOf } from "#shared/fleet/eks-arn.ts";
import type { HttpRemote, SourceCredentials } from "#shared/ports.ts";
import { type AwsGrant, type AwsPlace, awsPlace, isGranted } from "#shared/source/aws-place.ts";

/** The role of the function. */
export interface OwnRole {
  readonly credentials: () => Promise<SigningCredentials>;
  readonly grants: readonly AwsGrant[];
}

export interface AwsLoginUse {
  readonly namespace: string;
  /** Field of the upstream: `spec.git`. */
  readonly at: string;
  readonly address: string;
  readonly role: OwnRole;
  readonly http: HttpRemote;
  readonly clock: Clock;
  readonly timeLeftMs: () => number;
  /** True when the upstream refused the login that was known. */
  readonly fresh: boolean;
}

interface Token {
  readonly login: SourceCredentials;
  readonly expiresAt: number;
}

/** A fetch that begins with a token ends with it. ECR's live for 12 hours. */
const marginMs = 10 * 60_000;
const maxAnswerBytes = 64 * 1024;
const maxReason = 300;

/** The tokens of this process, by key and registry. */
const tokens = new LRUCache<string, Token>({ max: 100 });

/** @throws StarlingError `AwsSourceDenied`, `AuthenticationFailed`, `UpstreamUnavailable` */
export async function awsLogin(use: AwsLoginUse): Promise<SourceCredentials> {
  const { address, at, role, namespace, clock } = use;
  const place = awsPlace(address);
  if (place === undefined) throw denied(`${address} is no repository of AWS; correct ${at}.url`);
  if (!isGranted(role.grants, place, namespace))
    throw denied(
      `${address} is not among what Sources of the namespace ${namespace} may read with Starling's role: add ${arnOf(place)}:${namespace} to the setting awsSources, and deploy`,
    );
  const keys = await role.credentials();
  if (place.service === "ecr") return registryLogin(place, keys, use);
  const { hostname, pathname } = new URL(address);
  return { kind: "basic", ...gitSignature({ hostname, pathname, region: place.region }, keys, clock.now()) };
}

async function registryLogin(place: AwsPlace, keys: SigningCredentials, use: AwsLoginUse): Promise<SourceCredentials> {
  const id = JSON.stringify([keys.accessKeyId, place.region, place.suffix]);
  const known = use.fresh ? undefined : tokens.get(id);
  if (known !== undefined && known.expiresAt - marginMs > use.clock.now().getTime()) return known.login;
  const token = await newToken(place, keys, use);
  tokens.set(id, token);
  return token.login;
}

const tokenAnswer = z.object({
  authorizationData: z.array(z.object({ authorizationToken: z.base64(), expiresAt: z.number() })).min(1),
});

/** Not the SDK's client, which would add 76 KiB to a function for one question. */
async function newToken(place: AwsPlace, keys: SigningCredentials, use: AwsLoginUse): Promise<Token> {
  const { http, clock, timeLeftMs } = use;
  const hostname = `api.ecr.${place.region}.${place.suffix}`;
  const { sessionToken, ...pair } = keys;
  const credentials = { ...pair, ...defined({ sessionToken }) };
  const signer = new SignatureV4({ credentials, region: place.region, service: "ecr", sha256: Sha256 });
  const body = "{}";
  const question = {
    method: "POST",
    protocol: "https:",
    hostname,
    path: "/",
    headers: {
      host: hostname,
      "content-type": "application/x-amz-json-1.1",
      "x-amz-target": "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
    },
    body,
  };
  const { headers } = await signer.sign(question, { signingDate: clock.now() });
  const { host: _host, ...sent } = headers;
  const asked = {
    method: "POST" as const,
    headers: sent,
    body: Buffer.from(body),
    maxBytes: maxAnswerBytes,
    timeLeftMs,
  };
  const answer = await http.ask({ url: `https://${hostname}/`, ...asked });
  const text = new TextDecoder().decode(answer.body);
  if (answer.status === 400 || answer.status === 403) {
    const what = `${hostname} gives Starling's role no token (HTTP ${answer.status}): ${excerpt(typeOf(text), maxReason)}`;
    throw upstreamError(
      "AuthenticationFailed",
      `${what}; deploy the setting awsSources, and look for a Deny of ecr:GetAuthorizationToken`,
    );
  }
  const parsed = answer.status === 200 ? tokenAnswer.safeParse(jsonOf(text)) : undefined;
  const [data] = parsed?.data?.authorizationData ?? [];
  const [, username, password] =
    /^([^:]+):(.+)$/s.exec(Buffer.from(data?.authorizationToken ?? "", "base64").toString()) ?? [];
  if (data === undefined || username === undefined || password === undefined) {
    const message = `${hostname} answers HTTP ${answer.status} without a token; Starling asks again`;
    throw new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
  }
  return { login: { kind: "basic", username, password }, expiresAt: data.expiresAt * 1000 };
}

/** The name of an error; the rest of the answer may name keys. */
function typeOf(text: string): string {
  const parsed = z.object({ __type: z.string() }).safeParse(jsonOf(text));
  return parsed.success ? parsed.data.__type.replace(/^.*#/, "") : "no reason";
}

function arnOf({ service, region, account, resource }: AwsPlace): string {
  return `arn:${partitionOf(region)}:${service}:${region}:${account ?? "ACCOUNT"}:${resource}`;
}

function denied(message: string): StarlingError {
  return upstreamError("AwsSourceDenied", message);
}
