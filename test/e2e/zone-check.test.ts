/** `starling zone check` against a machine with zones: one that is whole, one without clusters, and ones that lack a way. */
import { createServer, type Server } from "node:net";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { STSClient } from "@aws-sdk/client-sts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { roleArnOf } from "#local/machine/deployment.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { refusedCalls } from "#test/support/policy-guard.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const securityGroups = ["sg-0a1b2c3d4e5f60718"];
const zones = JSON.stringify([
  { name: "fixed", vpc: {}, clusterNames: ["c*"] },
  { name: "bare", vpc: { natGateways: 2 } },
  { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718", "subnet-0b1b2c3d4e5f60718"], securityGroups },
  { name: "cut", subnets: ["subnet-0c1b2c3d4e5f60718"], securityGroups },
  { name: "broad", subnets: ["subnet-0d1b2c3d4e5f60718"], securityGroups },
]);
/** More than a check asks, by name: that of the workers is the last. */
const manyRegions = ["ca-central-1", "eu-north-1", "eu-south-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"];
let world: World;
let cli: WorldCli;
/** Takes connections, and speaks no TLS. */
let deaf: Server;
let heard = 0;

beforeAll(async () => {
  deaf = createServer((socket) => {
    heard += 1;
    socket.on("error", () => {});
    socket.on("data", () => socket.end("this is no TLS\n"));
  });
  await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
  const { port } = deaf.address() as { readonly port: number };
  world = await startWorld({
    faults: quiet,
    zones,
    sandboxes: (name, wire) =>
      wire({ aws: (clients) => (name === "apply-cut" ? withoutWays(clients, port) : clients) }),
  });
  cli = openWorldCli(world);
  await world.join({ name: "c1", zone: "fixed" }, { name: "d1", zone: "cut" }, { name: "h1" });
  await world.apply(
    clusterByArn("s1", { region: "eu-west-1", zone: "spoke" }),
    ...[...manyRegions, "us-east-1"].map((region) => clusterByArn(`b-${region}`, { region, zone: "broad" })),
  );
});
afterAll(async () => {
  cli.close();
  await world.close();
  deaf.close();
});

function clusterByArn(name: string, { region, zone }: { readonly region: string; readonly zone: string }) {
  const eks = { arn: `arn:aws:eks:${region}:000000000000:cluster/${name}` };
  return { apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata: { name }, spec: { eks, access: { zone } } };
}

/** The clients of a network whose resolver does not know Secrets Manager, and where another server answers for STS. */
function withoutWays(clients: AwsClients, port: number): AwsClients {
  const { region, credentials } = clients.sts.config;
  return {
    ...clients,
    secrets: new SecretsManagerClient({ region, credentials, endpoint: "https://secretsmanager.us-east-1.invalid" }),
    sts: new STSClient({ region, credentials, endpoint: `https://127.0.0.1:${port}` }),
  };
}

interface Checked {
  readonly result: string;
  readonly services: readonly { readonly service: string; readonly region: string; readonly state: string }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly use: string; readonly monthly: number }[];
}

async function check(line: string) {
  const { out, code } = await cli.run(`zone check ${line} -o json`);
  return { code, found: JSON.parse(out) as Checked };
}

const statesOf = ({ services }: Checked) => services.map(({ service, state }) => `${service} ${state}`);
const everyService = ["dynamodb ok", "s3 ok", "sqs ok", "sts ok", "eks ok", "secretsmanager ok"];

test("a zone whose workers reach everything is ok, and its role asked each service", async () => {
  const before = world.machine.eks.calls().length;
  const { code, found } = await check("fixed");
  expect(found).toMatchObject({
    kind: "ZoneCheck",
    metadata: { name: "fixed" },
    result: "ok",
    region: "us-east-1",
    network: { type: "vpc" },
    clusters: 1,
    worker: { state: "ok" },
    cluster: { cluster: "c1", result: "ok" },
  });
  expect(statesOf(found)).toEqual(everyService);
  expect(code).toBe(0);
  const worker = world.machine.plan.functions.find(({ functionName }) => functionName === "apply-fixed");
  if (worker === undefined) throw new Error("zone fixed has no workers");
  const name = roleArnOf(worker).split("/").at(-1) ?? "";
  const calls = world.machine.eks.calls().slice(before);
  // A queue may deliver a message twice.
  const asked = new Set(calls.flatMap((call) => (call.principalArn.includes(name) ? [call.operation] : [])));
  expect([...asked].sort()).toEqual(["DescribeCluster", "GetCallerIdentity"]);
  const services = new Set(
    world.calls().flatMap(({ function: of, action }) => (of === "apply-fixed" ? [action.split(":")[0]] : [])),
  );
  expect([...services].sort()).toEqual(["dynamodb", "eks", "s3", "secretsmanager", "sqs", "sts"]);
});

test("the cost of a zone with NAT gateways of its own is that of its gateways and addresses", async () => {
  const { code, found } = await check("bare");
  expect(code).toBe(0);
  expect(found).toMatchObject({ result: "ok", clusters: 0, prices: { region: "us-east-1", availabilityZones: 2 } });
  expect(found).not.toHaveProperty("cluster");
  expect(found.endpoints.filter(({ endpoint }) => endpoint === "nat" || endpoint === "address")).toMatchObject([
    { endpoint: "nat", use: "used", monthly: 65.7 },
    { endpoint: "address", use: "used", monthly: 7.3 },
  ]);
  const { out } = await cli.run("zone check bare");
  expect(out).toMatch(/cluster +skipped +- +the zone has no clusters/);
});

test("a service whose name does not resolve is the broken link, and one that nobody needs is no problem", async () => {
  const { code, found } = await check("cut");
  expect(code).toBe(1);
  expect(found.result).toBe("broken");
  expect(found.services).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        ...{ service: "secretsmanager", state: "broken", link: "dns", needed: true },
        host: "secretsmanager.us-east-1.invalid",
        code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
        remedy: expect.stringContaining("enableDnsSupport"),
      }),
      expect.objectContaining({ service: "sts", state: "unneeded", link: "tls", needed: false }),
      expect.objectContaining({ service: "dynamodb", state: "ok" }),
    ]),
  );
  expect(heard).toBeGreaterThan(0);
  const { out, err } = await cli.run("zone check cut");
  expect(out).toMatch(/secretsmanager +broken .*dns, (ENOTFOUND|EAI_AGAIN)/);
  expect(err).toContain("cut, secretsmanager: see that the VPC has enableDnsSupport");
});

test("a cluster that is broken at a link breaks the check of its zone", async () => {
  const { code, found } = await check("spoke");
  expect(code).toBe(1);
  expect(statesOf(found)).toEqual(everyService);
  expect(found.services).toContainEqual(expect.objectContaining({ service: "eks", region: "eu-west-1", needed: true }));
  expect(found).toMatchObject({
    result: "broken",
    cluster: {
      cluster: "s1",
      result: "broken",
      links: expect.arrayContaining([expect.objectContaining({ link: "eks", state: "broken" })]),
    },
  });
});

test("a check of clusters in more than six regions asks EKS in that of the workers and five others, and names the rest", async () => {
  const before = world.machine.eks.calls().length;
  const { found } = await check("broad");
  const eks = found.services.filter(({ service }) => service === "eks");
  expect(eks.map(({ region, state }) => `${region} ${state}`)).toEqual([
    ...["us-east-1 ok", "ca-central-1 ok", "eu-north-1 ok", "eu-south-1 ok", "eu-west-1 ok", "eu-west-2 ok"],
    ...["eu-west-3 skipped", "sa-east-1 skipped"],
  ]);
  const asked = world.machine.eks.calls().slice(before);
  const regions = asked.flatMap(({ operation, region }) => (operation === "DescribeCluster" ? [region] : []));
  expect([...new Set(regions)].sort()).toEqual([...manyRegions.slice(0, 5), "us-east-1"]);
  const { out, err } = await cli.run("zone check broad");
  expect(out).toMatch(/eks sa-east-1 +skipped +- +not asked: a check asks EKS in 6 regions at most/);
  expect(err).toContain("broad, eks sa-east-1: check a cluster of this region: `starling cluster check NAME`");
});

test("`home` is a zone that pays for no network, and `--cluster` takes a cluster of the zone only", async () => {
  const { code, found } = await check("home --cluster h1");
  expect({ code, endpoints: found.endpoints }).toEqual({ code: 0, endpoints: [] });
  expect(await cli.run("zone check home --cluster c1")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--cluster is c1, which is in the zone fixed; expected a cluster of the zone home"),
  });
  expect(await cli.run("zone check fixd")).toMatchObject({
    code: 1,
    err: expect.stringContaining("there is no zone fixd (did you mean fixed?)"),
  });
});

test("a zone whose workers do not run answers nothing, and answers when they run again", async () => {
  const sources = world.machine.zones.get("bare") ?? [];
  await Promise.all(sources.map((source) => source.pause()));
  const path = "/v1/zones/bare/check";
  const { id } = await world.session.call<{ readonly id: string }>("POST", path);
  const read = () =>
    world.session.call<{ readonly asked: { readonly id: string }; readonly answer?: { readonly id: string } }>(
      "GET",
      path,
    );
  const stored = await read();
  expect(stored.asked.id).toBe(id);
  expect(stored.answer?.id).not.toBe(id);
  for (const source of sources) source.resume();
  await world.waitFor("the answer", async () => (await read()).answer?.id === id);
});

test("the roles of the zones allow every call of the checks", async () => {
  const { resources } = await synthesizeTemplates({ zones });
  expect(refusedCalls(world.calls(), resources)).toEqual([]);
});
