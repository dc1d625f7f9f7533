/** The setting `sourceBuckets` grants what reading a bucket needs, and nothing else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { type BucketServer, startBucketServer } from "#test/support/bucket-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { grantsIn } from "#test/synth/grants.ts";
import { listOf, ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const own = "acme-manifests";
const other = "acme-shop";
const { resources, control } = await synthesizeTemplates({ sourceBuckets: `${own},444455556666/${other}:shop` });
const { statementsOf, grantsOf } = grantsIn(resources);
const arn = (name: string) => `arn:<AWS::Partition>:s3:::${name}`;

let server: BucketServer;
beforeAll(async () => {
  server = await startBucketServer();
});
afterAll(() => server.stop());

const given = () =>
  grantsOf("resolve", "s3")
    .filter((grant) => grant.includes(":s3:::"))
    .toSorted();

test("the role of the reader may do what reading a bucket asks for, and nothing else with it", async () => {
  const world = new SourceWorld();
  world.buckets = new S3BucketReader((region) => server.s3In(region));
  world.bucketRules = { allowed: parseAllowedBuckets(`${own},${other}`), own: "starling-blobs" };
  for (const bucket of [own, other]) {
    await server.put(bucket, { "a.yaml": "a", "deploy/b.yaml": "b" });
    await world.put({ s3: { bucket } });
    expect((await world.resolve()).status.artifact?.files).toBe(2);
  }
  const asked = server.requests.map(({ line }) => {
    const [, method, bucket = "", key] = /^(\w+) \/([^/]+)\/(.*)$/.exec(line) ?? [];
    expect(method).toBe("GET");
    return key === "" ? `s3:ListBucket ${arn(bucket)}` : `s3:GetObject ${arn(bucket)}/*`;
  });
  expect([...new Set(asked)].toSorted()).toEqual(given());
});

test("a grant counts in the account of the bucket only, so that nobody can make a deleted bucket anew elsewhere", () => {
  const accounts = statementsOf("resolve").flatMap(({ Action, Resource: on, Condition }) =>
    listOf(on)
      .map(textOf)
      .filter((each) => each.includes(":s3:::"))
      .map((each) => [listOf(Action).join(), each, textOf(Condition?.StringEquals?.["aws:ResourceAccount"])]),
  );
  expect(accounts.toSorted()).toEqual([
    ["s3:GetObject", `${arn(own)}/*`, "<AWS::AccountId>"],
    ["s3:GetObject", `${arn(other)}/*`, "444455556666"],
    ["s3:ListBucket", arn(own), "<AWS::AccountId>"],
    ["s3:ListBucket", arn(other), "444455556666"],
  ]);
});

test("no other function may read these buckets, and without the setting no function may", async () => {
  const holders = ofType(resources, "AWS::IAM::Policy").filter((policy) => JSON.stringify(policy).includes(`:s3:::`));
  expect(holders).toHaveLength(1);
  const without = await synthesizeTemplates();
  expect(JSON.stringify(without.resources)).not.toContain(":s3:::");
});

test("the output ResolveRole names the role for policies of buckets", () => {
  expect(Object.keys(control.findOutputs("ResolveRole"))).toEqual(["ResolveRole"]);
});
