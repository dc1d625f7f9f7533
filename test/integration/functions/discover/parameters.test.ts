/** Values of discovered clusters from Parameter Store, read over HTTP: a value that cannot be read is never removed. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CallFailure, EksStsCall } from "#local/aws/eks/eks-sts-server.ts";
import type { LocalParameter } from "#local/aws/eks/parameter-operations.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";

const accountId = "500000000001";
const other = "500000000002";
const region = "eu-west-1";
const ssm = { path: "/starling/clusters/{{ eks.name }}" };
const hidden = "hunter2-hunter2";

let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  world.trust(accountId, "apps");
});

afterEach(() => world.stop());

function put(name: string, value: string, type: LocalParameter["type"] = "String", at = { accountId, region }): void {
  world.parameters.put(at, `/starling/clusters/${name}`, { type, value });
}

function apply(values: object = { ssm }, accounts = [accountId]): Promise<void> {
  return world.apply(discoveryDocument("apps", { accounts }, { name: "{{ eks.name }}", values }));
}

/** Parameters by name; a name that is not registered does not exist. */
async function values(): Promise<Readonly<Record<string, unknown>>> {
  return Object.fromEntries((await world.fleet()).map((entry) => [entry.name, entry.values]));
}

async function condition(type: string) {
  const { conditions } = (await world.row("apps")).status;
  return conditions.find((each) => each.type === type);
}

const failures: Readonly<Record<string, CallFailure>> = {
  throttle: { status: 400, code: "ThrottlingException", message: "Rate exceeded" },
  refusal: {
    status: 400,
    code: "AccessDeniedException",
    message: "not authorized to perform: ssm:GetParametersByPath",
  },
  "service that is away": { status: 500, code: "InternalServerError", message: "oh" },
  "region that is off": { status: 400, code: "UnrecognizedClientException", message: "invalid token" },
  "answer without a word": { status: 200, code: "", message: "" },
};

const ofSsm = ({ service }: EksStsCall) => service === "ssm";

test("parameters directly below a cluster's path are its values, before those of tags, and each scan reads them", async () => {
  world.add(arnOf("a", accountId), { domain: "tag.example.com", tier: "gold" });
  world.add(arnOf("b", accountId), {});
  put("a/domain", "a.example.com");
  put("a/zones", "eu-1a,eu-1b", "StringList");
  put("a/deeper/domain", "not this one");
  put("ab/domain", "nor this one");
  put("a/domain", "of another account", "String", { accountId: other, region });
  put("a/domain", "of another region", "String", { accountId, region: "eu-central-1" });
  await apply({ fromTags: ["domain", "tier"], ssm });
  await world.scan("apps");
  const a = { domain: "a.example.com", tier: "gold", zones: ["eu-1a", "eu-1b"] };
  expect(await values()).toEqual({ a, b: {} });
  expect(await condition("Ready")).toMatchObject({ status: "True" });

  // Each account and region gets one request for all clusters, and EKS gets none where nothing has changed.
  world.operations();
  world.pass(1);
  await world.scan("apps");
  expect(world.operations().toSorted()).toEqual([
    "eks ListClusters",
    "ssm GetParametersByPath",
    "sts AssumeRole",
    "tagging GetResources",
  ]);

  put("a/domain", "new.example.com");
  put("b/domain", "b.example.com");
  world.parameters.delete({ accountId, region }, "/starling/clusters/a/zones");
  world.pass(1);
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "new.example.com", tier: "gold" }, b: { domain: "b.example.com" } });
});

test("parameters that need more than one answer are all read", async () => {
  for (let at = 0; at < 5; at++) world.add(arnOf(`c${at}`, accountId), {});
  for (let at = 0; at < 35; at++) put(`c${at % 5}/value_${at}`, String(at));
  await apply();
  await world.scan("apps");
  const all = Object.values(await values()) as readonly object[];
  expect(all.map((each) => Object.keys(each).length)).toEqual([7, 7, 7, 7, 7]);
});

test.each(Object.keys(failures))("every value stays unchanged after a %s, at once or in the middle", async (kind) => {
  world.add(arnOf("a", accountId), {});
  for (let at = 0; at < 25; at++) put(`a/value_${at}`, String(at));
  await apply();
  await world.scan("apps");
  const before = await world.fleet();
  expect(Object.keys(before[0]?.values ?? {})).toHaveLength(25);
  // Only the second half of the answer would still have it.
  put("a/value_24", "new");
  for (const answered of [0, 1, 2]) {
    let calls = 0;
    world.fail((call) => (ofSsm(call) && ++calls > answered ? failures[kind] : undefined));
    world.pass(48);
    await world.scan("apps");
    expect(await world.fleet()).toEqual(before);
    expect(await condition("Ready")).toMatchObject({ status: "False", reason: "Incomplete" });
  }
  // The spec has changed, and EKS answers otherwise: the parameters are still unknown.
  await apply({ fromTags: ["domain"], ssm });
  world.add(arnOf("a", accountId), { domain: "tag.example.com" });
  world.pass(48);
  await world.scan("apps");
  expect(await values()).toEqual({ a: { ...before[0]?.values, domain: "tag.example.com" } });
  world.fail(undefined);
  world.pass(1);
  await world.scan("apps");
  expect((await values()).a).toMatchObject({ value_0: "0", value_24: "new", domain: "tag.example.com" });
  expect(await condition("Ready")).toMatchObject({ status: "True" });
});

test("a cluster whose parameters cannot be read is registered once they can be read, and no other cluster waits for it", async () => {
  world.trust(other, "apps");
  world.add(arnOf("a", accountId), {});
  world.add(arnOf("b", other), {});
  put("a/domain", "a.example.com");
  put("b/domain", "b.example.com", "String", { accountId: other, region });
  world.fail((call) => (ofSsm(call) && call.principalArn.includes(other) ? failures.refusal : undefined));
  await apply({ ssm }, [accountId, other]);
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "a.example.com" } });
  const { refused, unseen } = (await world.row("apps")).status;
  expect(refused).toMatchObject([{ arn: arnOf("b", other), reason: "ParametersUnseen" }]);
  expect(unseen).toMatchObject([{ account: other, code: "AccountDenied" }]);
  expect(unseen?.[0]?.message).toContain(
    `allow ssm:GetParametersByPath of /starling/clusters to the role arn:aws:iam::${other}:role/starling/discovery/scan`,
  );
  world.fail(undefined);
  world.pass(1);
  await world.scan("apps");
  expect((await values()).b).toEqual({ domain: "b.example.com" });
});

test("a SecureString becomes no value and is shown nowhere; an earlier value stays, and is named", async () => {
  world.add(arnOf("a", accountId), {});
  put("a/domain", "a.example.com");
  put("a/token", hidden, "SecureString");
  put("a/my-domain", "no name of a value");
  await apply();
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "a.example.com" } });
  const said = await condition("ValuesAccepted");
  expect(said).toMatchObject({ status: "False" });
  expect(said?.message).toContain("/starling/clusters/a/token is a SecureString");
  expect(said?.message).toContain("/starling/clusters/a/my-domain has no name of a value as its last level");
  put("a/domain", hidden, "SecureString");
  world.pass(1);
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "a.example.com" } });
  const everything = JSON.stringify([await world.row("apps"), await world.found(), await world.cluster("a")]);
  expect(everything).not.toContain(hidden);
  expect(everything).not.toContain("S01TOj");
  // When somebody deletes the parameter, the scan has an answer and removes the value.
  world.parameters.delete({ accountId, region }, "/starling/clusters/a/domain");
  world.parameters.delete({ accountId, region }, "/starling/clusters/a/token");
  world.parameters.delete({ accountId, region }, "/starling/clusters/a/my-domain");
  world.pass(1);
  await world.scan("apps");
  expect(await values()).toEqual({ a: {} });
  expect(await condition("ValuesAccepted")).toBeUndefined();
});

test("parameters beyond the limit of a cluster are refused as a whole, and the earlier values stay", async () => {
  world.add(arnOf("a", accountId), {});
  put("a/domain", "a.example.com");
  await apply();
  await world.scan("apps");
  for (let at = 0; at < 5; at++) put(`a/large_${at}`, "x".repeat(4096));
  world.pass(1);
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "a.example.com" } });
  expect(await condition("ValuesAccepted")).toMatchObject({ reason: "TooLarge" });
});

test("a spec that no longer asks for parameters removes their values, and sends no request", async () => {
  world.add(arnOf("a", accountId), { domain: "tag.example.com" });
  put("a/domain", "a.example.com");
  await apply({ fromTags: ["domain"], ssm });
  await world.scan("apps");
  await apply({ fromTags: ["domain"] });
  world.operations();
  await world.scan("apps");
  expect(await values()).toEqual({ a: { domain: "tag.example.com" } });
  expect(world.operations()).not.toContain("ssm GetParametersByPath");
});

test("a scan without clusters asks for no parameters", async () => {
  put("a/domain", "a.example.com");
  await apply();
  world.operations();
  await world.scan("apps");
  expect(world.operations()).not.toContain("ssm GetParametersByPath");
});
