import { expect, test } from "vitest";
import { parseEksArn, roleArnIn } from "#shared/fleet/eks-arn.ts";

test("the ARN of a cluster is parsed into its parts", () => {
  expect(parseEksArn("arn:aws-cn:eks:cn-north-1:111122223333:cluster/Prod_EU-1")).toEqual({
    arn: "arn:aws-cn:eks:cn-north-1:111122223333:cluster/Prod_EU-1",
    partition: "aws-cn",
    region: "cn-north-1",
    accountId: "111122223333",
    name: "Prod_EU-1",
  });
});

test.each([
  ["arn:aws:eks:eu-west-1:111122223333:cluster/"],
  ["arn:aws:eks:eu-west-1:111122223333:cluster/a/b"],
  [`arn:aws:eks:eu-west-1:111122223333:cluster/${"a".repeat(101)}`],
  ["arn:aws:eks:eu-west-1:11112222333:cluster/a"],
  ["arn:aws:eks:evil.example:111122223333:cluster/a"],
  ["arn:aws-iso:eks:us-iso-east-1:111122223333:cluster/a"],
  ["arn:aws:eks:eu-west-1:111122223333:nodegroup/a"],
  ["arn:aws:ecs:eu-west-1:111122223333:cluster/a"],
  ["prod-1"],
])("the text %s is not an ARN of a cluster", (text) => {
  expect(parseEksArn(text)).toBeUndefined();
});

test.each([
  ["starling-apply", "arn:aws:iam::111122223333:role/starling-apply"],
  ["starling/clusters/apply", "arn:aws:iam::111122223333:role/starling/clusters/apply"],
])("the role %s belongs to the cluster's account", (name, expected) => {
  const cluster = parseEksArn("arn:aws:eks:eu-west-1:111122223333:cluster/a");
  expect(cluster && roleArnIn(cluster, name)).toBe(expected);
});
