import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { eksToken } from "#shared/adapters/aws/eks-token.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";

const now = new Date("2026-11-20T08:00:00Z");
const credentials = { accessKeyId: "ASIAEXAMPLE", secretAccessKey: "secret/key+", sessionToken: "a/session+token==" };

function clusterOf(arn: string) {
  const cluster = parseEksArn(arn);
  if (cluster === undefined) throw new Error(arn);
  return cluster;
}
const cluster = clusterOf("arn:aws:eks:eu-west-1:111122223333:cluster/Prod_1");

async function urlFor(arn = cluster.arn, signer: Parameters<typeof eksToken>[1] = credentials): Promise<URL> {
  const token = await eksToken(clusterOf(arn), signer, now);
  expect(token).toMatch(/^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
  return new URL(Buffer.from(token.slice("k8s-aws-v1.".length), "base64url").toString());
}

test("the URL has the parameters of a presigned GetCallerIdentity, and no others", async () => {
  const url = await urlFor();
  expect([...url.searchParams.keys()]).toEqual([
    "Action",
    "Version",
    "X-Amz-Security-Token",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
  ]);
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    Action: "GetCallerIdentity",
    Version: "2011-06-15",
    "X-Amz-Security-Token": credentials.sessionToken,
    "X-Amz-Credential": "ASIAEXAMPLE/20261120/eu-west-1/sts/aws4_request",
    "X-Amz-Date": "20261120T080000Z",
    "X-Amz-Expires": "60",
    "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
  });
});

test.each([
  ["arn:aws:eks:eu-west-1:111122223333:cluster/a", "https://sts.eu-west-1.amazonaws.com/"],
  ["arn:aws:eks:us-east-1:111122223333:cluster/a", "https://sts.us-east-1.amazonaws.com/"],
  ["arn:aws-cn:eks:cn-north-1:111122223333:cluster/a", "https://sts.cn-north-1.amazonaws.com.cn/"],
  ["arn:aws-us-gov:eks:us-gov-west-1:111122223333:cluster/a", "https://sts.us-gov-west-1.amazonaws.com/"],
])("the token for %s is presigned for the STS endpoint of its region", async (arn, expected) => {
  const { origin, pathname } = await urlFor(arn);
  expect(`${origin}${pathname}`).toBe(expected);
});

test("a token of a user's credentials has no session token", async () => {
  const url = await urlFor(cluster.arn, { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "s" });
  expect(url.searchParams.has("X-Amz-Security-Token")).toBe(false);
});

/**
 * The signature as AWS documents it, from the text of the URL:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
 */
test("the signature matches the URL, and a signed header has the cluster's name", async () => {
  const url = await urlFor();
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const query = url.search
    .slice(1)
    .split("&")
    .filter((pair) => !pair.startsWith("X-Amz-Signature="))
    .sort();
  const headers = [`host:${url.host}`, "x-k8s-aws-id:Prod_1"];
  const canonical = ["GET", "/", query.join("&"), ...headers, "", "host;x-k8s-aws-id", sha256("")].join("\n");
  const scope = "20261120/eu-west-1/sts/aws4_request";
  let key: Buffer = Buffer.from(`AWS4${credentials.secretAccessKey}`);
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  const text = ["AWS4-HMAC-SHA256", "20261120T080000Z", scope, sha256(canonical)].join("\n");
  expect(url.searchParams.get("X-Amz-Signature")).toBe(createHmac("sha256", key).update(text).digest("hex"));
});

describe("the size of a session token", () => {
  test("the token of an ordinary session is smaller than the limit", async () => {
    const token = await eksToken(cluster, { ...credentials, sessionToken: "A/".repeat(450) }, now);
    expect(token.length).toBeLessThan(4096);
  });

  test("the token of a session with many tags is refused, with the cause and the remedy", async () => {
    const asked = eksToken(cluster, { ...credentials, sessionToken: "A".repeat(3000) }, now);
    await expect(asked).rejects.toMatchObject({
      code: "TokenTooLarge",
      retry: "permanent",
      message: expect.stringMatching(
        /^the token for arn:aws:eks:eu-west-1:111122223333:cluster\/Prod_1 would have \d+ bytes.*session tags.*inline session policy/,
      ),
    });
    await expect(asked).rejects.not.toThrow(/AAAA/);
  });
});
