/** Events of CodeCommit and ECR on the account's bus, as AWS's documentation shows them. */
import { beforeEach, expect, test } from "vitest";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

const moved = {
  version: "0",
  id: "01234567-0123-0123-0123-012345678901",
  "detail-type": "CodeCommit Repository State Change",
  source: "aws.codecommit",
  account: "123456789012",
  time: "2019-06-12T10:23:43Z",
  region: "us-east-2",
  resources: ["arn:aws:codecommit:us-east-2:123456789012:MyDemoRepo"],
  detail: {
    event: "referenceUpdated",
    repositoryName: "MyDemoRepo",
    repositoryId: "12345678-1234-5678-abcd-12345678abcd",
    referenceType: "branch",
    referenceName: "main",
    referenceFullName: "refs/heads/main",
    commitId: "26a8f2EXAMPLE",
    oldCommitId: "3e5983DESTROYED",
  },
};
const pushed = {
  version: "0",
  id: "13cde686-328b-6117-af20-0e5566167482",
  "detail-type": "ECR Image Action",
  source: "aws.ecr",
  account: "123456789012",
  time: "2019-11-16T01:54:34Z",
  region: "us-west-2",
  resources: [],
  detail: {
    result: "SUCCESS",
    "repository-name": "team/app",
    "image-digest": "sha256:7f5b2640fe6fb4f46592dfd3410c4a79dac4f89e4782432e0378abcd1234",
    "action-type": "PUSH",
    "image-tag": "1.4.0",
  },
};

let world: WebhookWorld;
beforeEach(async () => {
  world = new WebhookWorld();
  const url = "https://git-codecommit.us-east-2.amazonaws.com/v1/repos/MyDemoRepo";
  await world.addSource("main", { url, ref: { branch: "main" } });
  await world.addSource("tags", { url, ref: { semver: ">=1" } });
  await world.addSource("elsewhere", { url: url.replace("us-east-2", "us-east-1"), ref: { branch: "main" } });
  const oci = "oci://123456789012.dkr.ecr.us-west-2.amazonaws.com/team/app";
  await world.addSourceOf("image", sourceSpec.parse({ oci: { url: oci, ref: { tag: "1.4.0" } } }));
  await world.addSourceOf("range", sourceSpec.parse({ oci: { url: oci, ref: { semver: ">=1" } } }));
  await world.addSourceOf("latest", sourceSpec.parse({ oci: { url: oci } }));
  const foreign = oci.replace("123456789012", "210987654321");
  await world.addSourceOf("foreign", sourceSpec.parse({ oci: { url: foreign, ref: { tag: "1.4.0" } } }));
});

async function polledBy(event: object): Promise<readonly string[]> {
  await world.handle(event);
  return polledNames(world.sender.take());
}

test("a moved reference polls the Sources of the repository in this region that follow it [receiver.bus]", async () => {
  expect(await polledBy(moved)).toEqual(["main"]);
  const tag = { ...moved.detail, event: "referenceCreated", referenceType: "tag", referenceName: "1.2.0" };
  expect(await polledBy({ ...moved, detail: tag })).toEqual(["tags"]);
  const gone = { ...moved.detail, event: "referenceDeleted" };
  expect(await polledBy({ ...moved, detail: gone })).toEqual(["main"]);
});

test("a pushed image polls the Sources of the repository in its account and region that can take the tag [receiver.bus]", async () => {
  expect(await polledBy(pushed)).toEqual(["image", "range"]);
  const { "image-tag": _tag, ...untagged } = pushed.detail;
  expect(await polledBy({ ...pushed, detail: untagged })).toEqual(["image", "latest", "range"]);
});

test("repositories in China have addresses of their own", async () => {
  const url = "https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/MyDemoRepo";
  await world.addSource("china", { url, ref: { branch: "main" } });
  expect(await polledBy({ ...moved, region: "cn-north-1" })).toEqual(["china"]);
});

test("a request over HTTP with the content of such an event proves nothing [receiver.bus]", async () => {
  const body = JSON.stringify(moved);
  for (const rawPath of ["/hook/github", "/hook/generic", "/hook/codecommit", `/hook/r/${"0".repeat(40)}`]) {
    const answer = await world.handle({ version: "2.0", rawPath, headers: {}, body, isBase64Encoded: false });
    expect([401, 404]).toContain(answer.statusCode);
  }
  expect(world.sender.take()).toEqual([]);
});

test.each([
  ["another source", { source: "com.example" }],
  ["another kind of event", { "detail-type": "CodeCommit Pull Request State Change" }],
  ["a region that is none", { region: "us-east-2.evil.example/" }],
  ["a repository that is a path", { detail: { ...moved.detail, repositoryName: "../x" } }],
])("an event with %s polls nothing", async (_what, other) => {
  expect(await polledBy({ ...moved, ...other })).toEqual([]);
});

test("an event that could not be handled fails the invocation, so that Lambda tries it again", async () => {
  world.sender.send = () => Promise.reject(new Error("no queue"));
  await expect(world.handle(moved)).rejects.toThrow("no queue");
});
