import { expect, test } from "vitest";
import { allowsSecrets } from "#local/machine/secret-access.ts";

const people = "arn:aws:iam::000000000000:user/ana";
const resolve = "arn:aws:sts::000000000000:assumed-role/resolve/resolve";
const webhook = "arn:aws:sts::000000000000:assumed-role/webhook/webhook";
const api = "arn:aws:sts::000000000000:assumed-role/api/api";
const secrets = "arn:aws:secretsmanager:us-east-1:000000000000:secret:starling";
const allows = allowsSecrets({
  people,
  functions: [
    { principalArn: resolve, readable: [`${secrets}/git/*`], describable: [] },
    { principalArn: webhook, readable: [`${secrets}/webhook-a1b2c3`], describable: [] },
    { principalArn: api, readable: [], describable: [`${secrets}/webhook-a1b2c3`] },
  ],
});

test.each([
  [people, "PutSecretValue", "starling/clusters/a", true],
  [people, "GetSecretValue", "starling/clusters/a", true],
  [resolve, "GetSecretValue", "starling/git/a", true],
  [resolve, "GetSecretValue", `${secrets}/git/a-a1b2c3`, true],
  [resolve, "GetSecretValue", "starling/clusters/a", false],
  [resolve, "GetSecretValue", "x/starling/git/a", false],
  [resolve, "DescribeSecret", "starling/git/a", false],
  [resolve, "PutSecretValue", "starling/git/a", false],
  [webhook, "GetSecretValue", `${secrets}/webhook-a1b2c3`, true],
  [webhook, "GetSecretValue", `${secrets}/webhook-a1b2c30`, false],
  [api, "DescribeSecret", `${secrets}/webhook-a1b2c3`, true],
  [api, "DescribeSecret", "starling/git/a", false],
  [api, "GetSecretValue", `${secrets}/webhook-a1b2c3`, false],
  ["arn:aws:sts::111111111111:assumed-role/starling-apply/apply", "GetSecretValue", "starling/git/a", false],
])("%s may call %s on the secret %s: %s", (principalArn, operation, secretId, allowed) => {
  expect(allows({ principalArn, operation, secretId })).toBe(allowed);
});
