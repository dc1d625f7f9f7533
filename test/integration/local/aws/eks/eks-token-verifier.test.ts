/** Each rule of aws-iam-authenticator, with tokens that break only this rule. */

import { describe, expect, test } from "vitest";
import { verifyEksToken } from "#local/aws/eks/eks-token-verifier.ts";
import { eksToken } from "#shared/adapters/aws/eks-token.ts";
import { defined } from "#shared/base/defined.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import { applyArn, homeAccount, homeCluster, startEksWorld } from "#test/support/eks-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const prefix = "k8s-aws-v1.";
const world = forAllTests(startEksWorld);

function tokenFor(arn = homeCluster("a"), options: { readonly at?: Date; readonly sessionToken?: string } = {}) {
  const cluster = parseEksArn(arn);
  if (cluster === undefined) throw new Error(arn);
  const { at = world.clock.now(), sessionToken } = options;
  return eksToken(cluster, { ...world.own, ...defined({ sessionToken }) }, at);
}

function urlOf(token: string): string {
  return Buffer.from(token.slice(prefix.length), "base64url").toString();
}

function tokenOf(url: string): string {
  return `${prefix}${Buffer.from(url).toString("base64url")}`;
}

const verifier = () => ({
  clusterName: "a",
  partition: "aws",
  region: "eu-west-1",
  stsEndpoint: world.server.endpoint,
  now: world.clock.now,
});

describe("a token is accepted", () => {
  test("a token from Starling is accepted, and the result has its maker", async () => {
    expect(await verifyEksToken(await tokenFor(), verifier())).toEqual({
      arn: applyArn,
      canonicalArn: `arn:aws:iam::${homeAccount}:role/starling-control-apply`,
      accountId: homeAccount,
      userId: expect.stringMatching(/^AROA[0-9A-F]{17}$/),
      sessionName: "apply",
      accessKeyId: "AKIAAPPLY",
    });
    expect(world.server.calls().at(-1)).toMatchObject({ operation: "GetCallerIdentity", region: "eu-west-1" });
  });

  test("a token of another region of the partition is accepted", async () => {
    await expect(verifyEksToken(await tokenFor(homeCluster("a", "us-east-2")), verifier())).resolves.toBeDefined();
  });

  test("a token is accepted for 15 minutes, despite its X-Amz-Expires of 60 seconds", async () => {
    const token = await tokenFor(undefined, { at: new Date(world.clock.now().getTime() - 14 * 60_000) });
    await expect(verifyEksToken(token, verifier())).resolves.toBeDefined();
  });
});

/** Legend: the defect, the change to the URL of a valid token, the message of the authenticator. */
const brokenUrls: readonly (readonly [string, (url: string) => string, string])[] = [
  ["the scheme http", (url) => url.replace("https:", "http:"), 'unexpected scheme "http" in pre-signed URL'],
  ["no scheme", (url) => url.replace("https://", ""), "missing protocol scheme"],
  ["a path", (url) => url.replace("/?", "/abc?"), "unexpected path in pre-signed URL"],
  ["no path", (url) => url.replace("/?", "?"), "unexpected path in pre-signed URL"],
  [
    "another host",
    (url) => url.replace("sts.eu-west-1.amazonaws.com", "sts.evil.example"),
    'unexpected hostname "sts.evil.example" in pre-signed URL',
  ],
  [
    "a host that begins like STS",
    (url) => url.replace("amazonaws.com", "amazonaws.com.evil.example"),
    'unexpected hostname "sts.eu-west-1.amazonaws.com.evil.example" in pre-signed URL',
  ],
  [
    "a host with a port",
    (url) => url.replace("amazonaws.com", "amazonaws.com:8443"),
    'unexpected hostname "sts.eu-west-1.amazonaws.com:8443" in pre-signed URL',
  ],
  [
    "a host with a user",
    (url) => url.replace("sts.", "me@sts."),
    'unexpected hostname "me@sts.eu-west-1.amazonaws.com" in pre-signed URL',
  ],
  [
    "a host of the partition of China",
    (url) => url.replace("eu-west-1.amazonaws.com", "cn-north-1.amazonaws.com.cn"),
    "partition {aws} does not support hostname sts.cn-north-1.amazonaws.com.cn",
  ],
  ["a region that is none", (url) => url.replace("eu-west-1", "-"), "invalid region identifier format provided: -"],
  ["another service's host", (url) => url.replace("//sts.", "//s3."), "unexpected hostname"],
  [
    "another parameter",
    (url) => `${url}&X-Amz-Content-Sha256=x`,
    'non-whitelisted query parameter "X-Amz-Content-Sha256"',
  ],
  ["a parameter twice", (url) => `${url}&Action=x`, "query parameter with multiple values not supported"],
  [
    "a parameter twice, the second in another case (CVE-2022-2385)",
    (url) => `${url}&action=GetCallerIdentity`,
    'duplicate query parameter found: "action"',
  ],
  [
    "a parameter twice, the first in another case (CVE-2022-2385)",
    (url) => url.replace("?", "?x-amz-signature=0&"),
    'duplicate query parameter found: "X-Amz-Signature"',
  ],
  ["a semicolon", (url) => `${url};x=1`, "malformed query parameter"],
  ["an escape that is none", (url) => `${url}%zz`, "malformed query parameter"],
  ["another action", (url) => url.replace("GetCallerIdentity", "GetSessionToken"), "unexpected action parameter"],
  ["no action", (url) => url.replace("Action=GetCallerIdentity&", ""), "unexpected action parameter"],
  ["another case of the action", (url) => url.replace("=GetCaller", "=getCaller"), "unexpected action parameter"],
  [
    "an unsigned header for the cluster",
    (url) => url.replace("host%3Bx-k8s-aws-id", "host"),
    "client did not sign the x-k8s-aws-id header in the pre-signed URL",
  ],
  [
    "a signed header that only begins like the one for the cluster",
    (url) => url.replace("x-k8s-aws-id", "x-k8s-aws-id2"),
    "client did not sign the x-k8s-aws-id header in the pre-signed URL",
  ],
  ["an expiry too long", (url) => url.replace("Expires=60", "Expires=901"), "invalid X-Amz-Expires parameter"],
  ["an expiry below zero", (url) => url.replace("Expires=60", "Expires=-1"), "invalid X-Amz-Expires parameter"],
  ["an expiry that is no number", (url) => url.replace("Expires=60", "Expires=1m"), "invalid X-Amz-Expires parameter"],
  ["no expiry", (url) => url.replace("X-Amz-Expires=60&", ""), "invalid X-Amz-Expires parameter"],
  ["no date", (url) => url.replace(/X-Amz-Date=\w+&/, ""), "X-Amz-Date parameter must be present in pre-signed URL"],
  [
    "a date in another format",
    (url) => url.replace(/X-Amz-Date=\w+&/, "X-Amz-Date=2026-11-20&"),
    "error parsing X-Amz-Date parameter 2026-11-20",
  ],
  [
    "a date that was changed after signing",
    (url) => url.replace(/(X-Amz-Date=\d{8}T\d{5})\d/, (_all, start) => `${start}${url.includes(`${start}1`) ? 2 : 1}`),
    "error from AWS (expected 200, got 403)",
  ],
  [
    "a host that was changed after signing",
    (url) => url.replace("eu-west-1.amazonaws", "eu-west-2.amazonaws"),
    "error from AWS (expected 200, got 403)",
  ],
  [
    "another signature",
    (url) => url.replace(/.$/, (end) => (end === "0" ? "1" : "0")),
    "error from AWS (expected 200, got 403)",
  ],
  ["a key that nobody has", (url) => url.replace("AKIAAPPLY", "AKIANOBODY"), "error from AWS (expected 200, got 403)"],
];

describe("a token is refused", () => {
  test.each(brokenUrls)("a token is refused if its URL has %s", async (_what, broken, expected) => {
    const url = urlOf(await tokenFor());
    expect(broken(url)).not.toBe(url);
    await expect(verifyEksToken(tokenOf(broken(url)), verifier())).rejects.toThrow(expected);
  });

  test("a token of more than 4,096 bytes is refused", async () => {
    const token = await tokenFor();
    const atLimit = `${token}${"A".repeat(4096 - token.length)}`;
    await expect(verifyEksToken(`${atLimit}A`, verifier())).rejects.toThrow("token is too large");
    await expect(verifyEksToken(atLimit, verifier())).rejects.not.toThrow("token is too large");
  });

  test("a token without its prefix is refused", async () => {
    const token = (await tokenFor()).replace("v1", "v2");
    await expect(verifyEksToken(token, verifier())).rejects.toThrow('missing expected "k8s-aws-v1." prefix');
  });

  test.each(["=", "==", "+", "/", "A=\n"])("a token whose base64 ends with %j is refused", async (end) => {
    await expect(verifyEksToken(`${await tokenFor()}${end}`, verifier())).rejects.toThrow("illegal base64 data");
  });

  test("a token that is 16 minutes old is refused", async () => {
    const token = await tokenFor(undefined, { at: new Date(world.clock.now().getTime() - 16 * 60_000) });
    await expect(verifyEksToken(token, verifier())).rejects.toThrow("is expired (15 minute expiration)");
  });

  test("a token for another cluster is refused", async () => {
    const token = await tokenFor();
    await expect(verifyEksToken(token, { ...verifier(), clusterName: "b" })).rejects.toThrow("got 403");
  });

  test("a token whose session token does not belong to its key is refused", async () => {
    const token = await tokenFor(undefined, { sessionToken: "made up" });
    await expect(verifyEksToken(token, verifier())).rejects.toThrow("InvalidClientTokenId");
  });

  test("a token of the global endpoint outside of the partition aws is refused", async () => {
    const url = urlOf(await tokenFor()).replace("sts.eu-west-1.", "sts.");
    const inChina = { ...verifier(), partition: "aws-cn", region: "cn-north-1" };
    await expect(verifyEksToken(tokenOf(url), inChina)).rejects.toThrow("global endpoint unsupported");
  });
});

/** Legend: host, partition of the verifier, whether the rules allow the host. */
test.each([
  ["sts.amazonaws.com", "aws", true],
  ["sts-fips.us-east-1.amazonaws.com", "aws", true],
  ["sts.eu-west-1.api.aws", "aws", true],
  ["sts.cn-north-1.amazonaws.com.cn", "aws-cn", true],
  ["sts.cn-northwest-1.api.amazonwebservices.com.cn", "aws-cn", true],
  ["sts.us-gov-west-1.amazonaws.com", "aws-us-gov", true],
  ["sts.xx-new-9.amazonaws.com", "aws", true],
  ["sts.eu-west-1.amazonaws.com", "aws-cn", false],
  ["sts.cn-north-1.amazonaws.com.cn", "aws-us-gov", false],
])("the host %s is allowed in the partition %s: %s", async (host, partition, passes) => {
  const url = urlOf(await tokenFor()).replace("sts.eu-west-1.amazonaws.com", host);
  const asked = verifyEksToken(tokenOf(url), { ...verifier(), partition, region: "eu-west-1" });
  await expect(asked).rejects.toThrow(passes ? "got 403" : /does not support|unexpected hostname/);
});
