import { describe, expect, test } from "vitest";
import { awsGrant, awsGrantForm, awsPlace, isGranted } from "#shared/source/aws-place.ts";

const ecr = "oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com/acme/shop";
const connection = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";
const connected = `https://codeconnections.eu-west-1.amazonaws.com/git-http/111122223333/eu-west-1/${connection}/acme/shop.git`;

describe("the addresses of AWS", () => {
  test.each<[string, object]>([
    [
      ecr,
      {
        service: "ecr",
        suffix: "amazonaws.com",
        region: "eu-west-1",
        account: "111122223333",
        resource: "repository/acme/shop",
      },
    ],
    ["oci://111122223333.dkr.ecr-fips.us-gov-west-1.amazonaws.com/a", { service: "ecr", region: "us-gov-west-1" }],
    ["oci://111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/a", { service: "ecr", suffix: "amazonaws.com.cn" }],
    ["https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop", { service: "codecommit", resource: "shop" }],
    [connected, { service: "codeconnections", account: "111122223333", resource: `connection/${connection}` }],
    [connected.replace("codeconnections", "codestar-connections"), { service: "codestar-connections" }],
  ])("%s is read", (address, place) => {
    expect(awsPlace(address)).toMatchObject(place);
  });

  test.each([
    "oci://ghcr.io/acme/shop",
    "oci://public.ecr.aws/acme/shop",
    "oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com.evil.example/shop",
    "oci://evil.example/111122223333.dkr.ecr.eu-west-1.amazonaws.com/shop",
    "oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com:8443/shop",
    "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop/../other",
    "https://git-codecommit.eu-west-1.amazonaws.com@evil.example/v1/repos/shop",
    "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a%2fb",
    `${connected.replace("/eu-west-1/", "/us-east-1/")}`,
    `https://codeconnections.eu-west-1.amazonaws.com/git-http/111122223333/eu-west-1/${connection}/../x/shop.git`,
    "ssh://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop",
  ])("%s is none of them", (address) => {
    expect(awsPlace(address)).toBeUndefined();
  });
});

describe("an entry of the setting awsSources", () => {
  const granted = (entry: string, address: string, namespace = "shop") => {
    const place = awsPlace(address);
    return place !== undefined && isGranted([awsGrant(entry)], place, namespace);
  };
  const arn = "arn:aws:ecr:eu-west-1:111122223333:repository";

  test.each([
    [`${arn}/acme/shop`, ecr],
    [`${arn}/acme/*`, ecr],
    [`${arn}/*:shop`, ecr],
    [`${arn}/*:blog+shop`, ecr],
    ["arn:aws:codecommit:eu-west-1:999999999999:shop", "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop"],
    [`arn:aws:codeconnections:eu-west-1:111122223333:connection/${connection}:shop`, connected],
  ])("%s grants %s", (entry, address) => {
    expect(granted(entry, address)).toBe(true);
  });

  test.each([
    [`${arn}/acme/shop-2`, ecr],
    [`${arn}/acme/sho`, ecr],
    [`${arn}/acme.shop`, ecr],
    [`${arn}/acme/*:blog+shop-2`, ecr],
    [`${arn.replace("111122223333", "222233334444")}/acme/*`, ecr],
    [`${arn.replace("eu-west-1", "us-east-1")}/acme/*`, ecr],
    ["arn:aws:codecommit:eu-west-1:999999999999:acme*", "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop"],
  ])("%s does not grant %s", (entry, address) => {
    expect(granted(entry, address)).toBe(false);
  });

  test.each([
    "*",
    `${arn}`,
    "arn:aws:s3:::bucket/*",
    "arn:aws:ecr:*:*:repository/*",
    `${arn}/a:`,
    `${arn}/a:a b`,
    `${arn}/a:a:b`,
    "",
  ])("%j is no entry", (entry) => {
    expect(awsGrantForm.test(entry)).toBe(false);
    expect(() => awsGrant(entry)).toThrow("awsSources");
  });
});
