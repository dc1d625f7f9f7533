import { beforeEach, describe, expect, test } from "vitest";
import type { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import { externalId, homeCluster, spokeCluster, spokeRole, startEksWorld } from "#test/support/eks-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const homeArn = homeCluster("home");
const role = { arn: spokeRole, externalId };

function target(arn: string, more: { readonly role?: { readonly arn: string; readonly externalId: string } } = {}) {
  const cluster = parseEksArn(arn);
  if (cluster === undefined) throw new Error(arn);
  return { cluster, ...more };
}

const anew = { refresh: false };
const again = { refresh: true };

const world = forEachTest(startEksWorld);
let access: EksAccess;
beforeEach(() => {
  world.addCluster(homeArn);
  for (const name of ["spoke", "other"]) world.addCluster(spokeCluster(name));
  world.addCluster(spokeCluster("far", "ap-south-1"));
  access = world.access();
});

describe("a session of a role", () => {
  test("the session is requested once, for every cluster of the account and all callers at once", async () => {
    const asked = ["spoke", "other"].flatMap((name) => [
      access.token(target(spokeCluster(name), { role }), anew),
      access.endpoint(target(spokeCluster(name), { role })),
    ]);
    await Promise.all(asked);
    world.pass(45);
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    expect(world.count("sts AssumeRole")).toBe(1);
  });

  test("the session is replaced before it ends", async () => {
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    world.pass(51);
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    expect(world.count("sts AssumeRole")).toBe(2);
  });

  test("the session is used to its last minute while STS gives no other one", async () => {
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    world.fail(() => ({ status: 503, code: "ServiceUnavailable", message: "no" }));
    world.pass(58);
    await expect(access.token(target(spokeCluster("spoke"), { role }), anew)).resolves.toMatch(/^k8s-aws-v1\./);
    world.pass(11);
    await expect(access.token(target(spokeCluster("spoke"), { role }), anew)).rejects.toMatchObject({
      code: "StsUnavailable",
    });
  });

  test("the session comes from the STS of Starling's own region, and is valid for clusters of every region", async () => {
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    const token = await access.token(target(spokeCluster("far", "ap-south-1"), { role }), anew);
    expect(world.server.calls().map(({ service, region }) => `${service} ${region}`)).toEqual(["sts us-east-1"]);
    const signed = Buffer.from(token.replace("k8s-aws-v1.", ""), "base64url").toString();
    expect(new URL(signed).host).toBe("sts.ap-south-1.amazonaws.com");
  });

  test("the session is not needed for a cluster that Starling reaches as itself", async () => {
    await access.endpoint(target(homeArn));
    await access.token(target(homeArn), anew);
    expect(world.operations()).toEqual(["eks DescribeCluster"]);
  });

  test.each([
    ["home", "apply function"],
    ["spoke", "apply function of zone spoke"],
  ])("a refusal names the role of the workers of zone %s", async (zone, name) => {
    const wrong = { arn: `${spokeRole}-2`, externalId };
    await expect(world.access(zone).endpoint(target(spokeCluster("spoke"), { role: wrong }))).rejects.toMatchObject({
      message: expect.stringContaining(`to the role of Starling's ${name} where`),
    });
  });

  test.each([
    ["another external id", { arn: spokeRole, externalId: "starling.111122223333.us-east-1/c2" }],
    ["another role", { arn: `${spokeRole}-2`, externalId }],
  ])("a session with %s is refused with the role and what to do", async (_what, wrong) => {
    for (const name of ["spoke", "other"]) {
      await expect(access.endpoint(target(spokeCluster(name), { role: wrong }))).rejects.toMatchObject({
        code: "RoleDenied",
        message: expect.stringMatching(
          new RegExp(`^Starling may not assume role ${wrong.arn}: .* where sts:ExternalId is ${wrong.externalId},`),
        ),
      });
    }
    expect(world.count("sts AssumeRole")).toBe(1);
  });

  test.each([
    [
      "RegionDisabledException",
      403,
      "RegionDisabled",
      /STS in Starling's region us-east-1 is not active for account 444455556666;/,
    ],
    ["PackedPolicyTooLarge", 400, "TokenTooLarge", /session tags/],
    ["InternalFailure", 500, "StsUnavailable", /STS in us-east-1 answered/],
    ["ExpiredToken", 403, "StsUnavailable", /STS in us-east-1 answered/],
  ])("a session request that ends in %s (%d) is %s", async (code, status, expected, message) => {
    world.fail(() => ({ status, code, message: "no" }));
    const asked = access.token(target(spokeCluster("spoke"), { role }), anew);
    await expect(asked).rejects.toMatchObject({ code: expected, message: expect.stringMatching(message) });
    world.fail(undefined);
    world.pass(0.6);
    await expect(access.token(target(spokeCluster("spoke"), { role }), anew)).resolves.toMatch(/^k8s-aws-v1\./);
  });
});

describe("a token", () => {
  test("a token is kept for ten minutes", async () => {
    const first = await access.token(target(homeArn), anew);
    world.pass(9);
    expect(await access.token(target(homeArn), anew)).toBe(first);
    world.pass(2);
    expect(await access.token(target(homeArn), anew)).not.toBe(first);
  });

  test("a token that was refused is made anew, with a new session if the old one is not brand new", async () => {
    const first = await access.token(target(spokeCluster("spoke"), { role }), anew);
    world.pass(2);
    const all = await Promise.all([1, 2, 3].map(() => access.token(target(spokeCluster("spoke"), { role }), again)));
    expect(all).not.toContain(first);
    expect(world.count("sts AssumeRole")).toBe(2);
    await access.token(target(spokeCluster("spoke"), { role }), again);
    expect(world.count("sts AssumeRole")).toBe(2);
  });
});

describe("the address of a cluster", () => {
  test("the address is requested once a day, however often it is needed", async () => {
    await Promise.all([1, 2, 3].map(() => access.endpoint(target(homeArn))));
    world.pass(24 * 60 - 1);
    const described = {
      ...{ server: "https://127.0.0.1:9", caData: "QQ==", authenticationMode: "API" },
      ...{ publicAccess: true, publicCidrs: ["0.0.0.0/0"] },
    };
    expect(await access.endpoint(target(homeArn))).toEqual(described);
    expect(world.count("eks DescribeCluster")).toBe(1);
    world.pass(2);
    await access.endpoint(target(homeArn));
    expect(world.count("eks DescribeCluster")).toBe(2);
  });

  test("the address is requested again when no server answered there, once a minute at most", async () => {
    await access.endpoint(target(homeArn));
    world.addCluster(homeArn, { endpoint: "https://127.0.0.1:10" });
    access.distrust(target(homeArn));
    expect(await access.endpoint(target(homeArn))).toMatchObject({ server: "https://127.0.0.1:9" });
    world.pass(1.1);
    expect(await access.endpoint(target(homeArn))).toMatchObject({ server: "https://127.0.0.1:10" });
  });

  test("the address in the Cluster's row is used for a day after EKS reported it", async () => {
    await access.endpoint(target(homeArn));
    const known = access.address(target(homeArn));
    const another = world.access();
    expect(await another.endpoint(target(homeArn), known)).toMatchObject({
      server: "https://127.0.0.1:9",
      caData: "QQ==",
    });
    expect(another.address(target(homeArn))).toEqual(known);
    expect(world.count("eks DescribeCluster")).toBe(1);
    world.pass(24 * 60 + 1);
    await another.endpoint(target(homeArn), known);
    expect(world.count("eks DescribeCluster")).toBe(2);
  });

  test("the address is requested if the row has that of another cluster", async () => {
    await access.endpoint(target(spokeCluster("spoke"), { role }));
    const known = access.address(target(spokeCluster("spoke"), { role }));
    world.addCluster(homeArn, { endpoint: "https://127.0.0.1:10" });
    expect(await world.access().endpoint(target(homeArn), known)).toMatchObject({ server: "https://127.0.0.1:10" });
  });

  test("the address is requested if no server answers at the row's, and the row is not trusted again", async () => {
    await access.endpoint(target(homeArn));
    const known = access.address(target(homeArn));
    world.addCluster(homeArn, { endpoint: "https://127.0.0.1:10" });
    world.pass(2);
    const another = world.access();
    await another.endpoint(target(homeArn), known);
    another.distrust(target(homeArn));
    expect(await another.endpoint(target(homeArn), known)).toMatchObject({ server: "https://127.0.0.1:10" });
    expect(await another.endpoint(target(homeArn), known)).toMatchObject({ server: "https://127.0.0.1:10" });
    expect(world.count("eks DescribeCluster")).toBe(2);
  });

  test("the address stays unchanged while EKS does not answer", async () => {
    await access.endpoint(target(homeArn));
    world.pass(24 * 60 + 1);
    world.fail(() => ({ status: 400, code: "ThrottlingException", message: "Rate exceeded" }));
    await expect(access.endpoint(target(homeArn))).resolves.toMatchObject({ server: "https://127.0.0.1:9" });
    const asked = world.count("eks DescribeCluster");
    world.pass(0.9);
    await expect(access.endpoint(target(homeArn))).resolves.toMatchObject({ server: "https://127.0.0.1:9" });
    expect(world.count("eks DescribeCluster")).toBe(asked);
    world.fail(undefined);
    world.addCluster(homeArn, { endpoint: "https://127.0.0.1:10" });
    world.pass(0.2);
    await expect(access.endpoint(target(homeArn))).resolves.toMatchObject({ server: "https://127.0.0.1:10" });
  });

  test.each([
    ["ThrottlingException", 400, "EksThrottled", /throttles requests .* ThrottlingException/],
    ["AccessDeniedException", 403, "EksDenied", /allow eks:DescribeCluster on it/],
    ["ServerException", 500, "EksUnavailable", /EKS did not describe/],
    ["UnrecognizedClientException", 403, "RegionOff", /eu-west-1 is not enabled for account 111122223333/],
  ])("the address is unknown after %s (%d): %s", async (code, status, expected, message) => {
    world.fail(() => ({ status, code, message: "no" }));
    const asked = access.endpoint(target(homeArn));
    await expect(asked).rejects.toMatchObject({ code: expected, retry: "transient" });
    await expect(asked).rejects.toThrow(message);
  });

  test.each(["CREATING", "DELETING", "FAILED", "PENDING"] as const)(
    "the address of a cluster that is %s is not used, and requested again half a minute later",
    async (status) => {
      world.addCluster(homeArn, { status });
      await expect(access.endpoint(target(homeArn))).rejects.toMatchObject({
        code: "EksClusterNotActive",
        retry: "transient",
        message: expect.stringContaining(`the status ${status} for ${homeArn}`),
      });
      world.addCluster(homeArn, { status: "UPDATING" });
      await expect(access.endpoint(target(homeArn))).rejects.toMatchObject({ code: "EksClusterNotActive" });
      expect(world.count("eks DescribeCluster")).toBe(1);
      world.pass(0.6);
      await expect(access.endpoint(target(homeArn))).resolves.toBeDefined();
    },
  );

  test("the address is not that of a cluster of Starling's account with the same name", async () => {
    world.addCluster(homeCluster("spoke"));
    await expect(access.endpoint(target(spokeCluster("spoke")))).rejects.toMatchObject({
      code: "EksClusterNotFound",
      message: expect.stringMatching(
        /knows .*:111122223333:cluster\/spoke of the same name, but not .* spec\.access\.role/,
      ),
    });
  });

  test("the address of a cluster that is gone is an error", async () => {
    await expect(access.endpoint(target(spokeCluster("gone"), { role }))).rejects.toMatchObject({
      code: "EksClusterNotFound",
      message: expect.stringContaining("EKS does not know arn:"),
      data: { arn: spokeCluster("gone") },
      cause: expect.any(Error),
    });
  });

  test("the address is requested with a new session when the old one has ended early", async () => {
    await access.token(target(spokeCluster("spoke"), { role }), anew);
    world.pass(2);
    let refused = 0;
    world.fail(({ service }) => {
      if (service !== "eks" || refused > 0) return undefined;
      refused += 1;
      return { status: 403, code: "ExpiredTokenException", message: "The security token is expired" };
    });
    await expect(access.endpoint(target(spokeCluster("spoke"), { role }))).resolves.toBeDefined();
    expect(world.count("sts AssumeRole")).toBe(2);
  });
});
