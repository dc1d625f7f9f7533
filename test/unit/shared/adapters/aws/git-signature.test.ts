import { expect, test } from "vitest";
import { gitSignature } from "#shared/adapters/aws/git-signature.ts";

const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const now = new Date("2026-03-01T04:05:06.789Z");
const connection =
  "https://codeconnections.eu-central-1.amazonaws.com/git-http/111122223333/eu-central-1/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/acme/shop.git";

/** The signatures are those of `aws codecommit credential-helper` of awscli 1.45.11, at this time. */
test.each([
  [
    "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop",
    "eu-west-1",
    undefined,
    "d1515e70727fd3ae4990c7319951d15390248abfc56b540525b519751b760d48",
  ],
  [
    "https://git-codecommit.us-east-1.amazonaws.com/v1/repos/My.Repo-1",
    "us-east-1",
    "FwoGZXIvYXdzEXAMPLE/token+==",
    "c64aa04ddf359d81cb51ccaf9d9712405dfc6a921f22d3ca8bd633187029b4bf",
  ],
  [
    "https://git-codecommit-fips.us-gov-west-1.amazonaws.com/v1/repos/shop",
    "us-gov-west-1",
    undefined,
    "a62b3c9436d0ed1a444ba26efa7f5b9a81bcd5ed940721f029c4e3fae5f6efc9",
  ],
  [
    "https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/shop",
    "cn-north-1",
    undefined,
    "476a41bf54ca9601aaed9be3f8fe052785a8739886ae36168dfa7f11bbe86925",
  ],
  [connection, "eu-central-1", "TOKEN", "96e5f5bbe9387781c242e59c6aab8472e876c87c6942a862b764995a0a77f987"],
])("%s is signed as AWS's own helper does", (url, region, sessionToken, signature) => {
  const { hostname, pathname } = new URL(url);
  const login = gitSignature(
    { hostname, pathname, region },
    { ...keys, ...(sessionToken === undefined ? {} : { sessionToken }) },
    now,
  );
  expect(login).toEqual({
    username: sessionToken === undefined ? "AKIDEXAMPLE" : `AKIDEXAMPLE%${sessionToken}`,
    password: `20260301T040506Z${signature}`,
  });
});
