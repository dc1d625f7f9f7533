/** Each link of the way to a cluster is broken once: with STS, EKS, and API servers that authenticate as EKS does. */

import { type ClusterConnection, type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { answerCheck } from "#functions/apply/check/answer-check.ts";
import type { CheckedZone } from "#functions/apply/check/checked-way.ts";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import type { AccessEntry, EksCluster } from "#local/aws/eks/eks-register.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { defaultGroup, rbacManifests } from "#shared/fleet/access/cluster-rbac.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import type { ClusterSpec, EndpointOverride } from "#shared/fleet/kinds/cluster.ts";
import type { CheckRow } from "#shared/fleet/rows/check-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { clusterFixture, endpointOf } from "#test/support/cluster-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import {
  applyArn,
  externalId,
  homeCluster,
  installation,
  spokeCluster,
  spokeRole,
  startEksWorld,
} from "#test/support/eks-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const arn = spokeCluster("spoke");
const entry: AccessEntry = {
  principalArn: spokeRole,
  username: "starling:{{SessionName}}",
  kubernetesGroups: [defaultGroup],
  policies: [],
};
const spec: ClusterSpec = { eks: { arn }, access: { role: { name: "starling/clusters/apply" } } };
const world = forEachTest(startEksWorld);
let host: ClusterHost;
let connection: ClusterConnection;
let table: MemoryTable;
let secret: () => Promise<string>;
beforeEach(async () => {
  host = await startClusterHost({
    controllers: "off",
    authenticator: eksAuthenticator({
      clusters: world.clusters,
      stsEndpoint: world.server.endpoint,
      now: world.clock.now,
      arnOf: () => arn,
    }),
  });
  connection = host.addCluster("spoke");
  table = new MemoryTable();
  secret = () => Promise.reject(new Error("no secret is to be read"));
  setCluster({});
  await asAdmin(async (admin) => {
    for (const object of rbacManifests({ group: defaultGroup })) {
      const found = await admin.client.lookup({ group: object.apiVersion.split("/").at(-2) ?? "", kind: object.kind });
      if (found.outcome === "found") await admin.client.apply(found.info, object);
    }
  });
});
afterEach(() => host.stop());

function setCluster(more: Partial<EksCluster>): void {
  const { server, caData } = connection;
  world.addCluster(arn, { endpoint: server, caData, accessEntries: [entry], ...more });
}

async function asAdmin<T>(work: (admin: ReturnType<typeof clusterFixture>) => Promise<T>): Promise<T> {
  const admin = clusterFixture({ endpoint: endpointOf(connection) });
  try {
    return await work(admin);
  } finally {
    await admin.stop();
  }
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1";

function withRules(role: string, verbs: readonly string[]): Promise<unknown> {
  const rules = [{ apiGroups: ["", "apps", "*"], resources: ["*"], verbs }];
  return asAdmin((admin) =>
    admin.raw("PATCH", `${rbacPath}/clusterroles/${role}`, { as: "merge-patch", body: { rules } }),
  );
}

function without(binding: string): Promise<unknown> {
  return asAdmin((admin) => admin.raw("DELETE", `${rbacPath}/clusterrolebindings/${binding}`));
}

const home: CheckedZone = { own: "home", others: [], addresses: [] };
let asked = 0;

/** Asks as the function api does. A sandbox of the function apply that knows the cluster answers. */
async function check(of: ClusterSpec = spec, row = clusterRow(of), zone = home): Promise<readonly LinkFinding[]> {
  asked += 1;
  const access = world.access();
  const connectorBy = (eks: typeof access) =>
    new KubeConnector({
      secrets: { read: () => secret() },
      eks,
      clock: world.clock,
      installation,
      addresses: clusterAddresses,
      zone: zone.own,
    });
  const put: CheckRow = {
    ...keys.check("c1"),
    type: "Check",
    schema: rowSchema,
    version: asked,
    asked: { id: `check-${asked}`, at: "2026-11-23T08:00:00.000Z", by: "ana" },
  };
  await table.write([{ put: row }, { put }]);
  const newWay = () => {
    const eks = access.withoutMemory();
    return { eks, connector: connectorBy(eks), clock: world.clock, zone };
  };
  await answerCheck("c1", { table, newWay });
  // The second call finds the answer and sends no request.
  const calls = world.operations().length;
  await answerCheck("c1", { table, newWay });
  expect(world.operations()).toHaveLength(calls);
  const answered = await table.get(keys.check("c1"));
  expect(answered?.answer?.id).toBe(`check-${asked}`);
  return answered?.answer?.links ?? [];
}

const statesOf = (links: readonly LinkFinding[]) => links.map(({ link, state }) => `${link} ${state}`);
const ways = [
  "cluster",
  "role",
  "externalId",
  "region",
  "eks",
  "network",
  "accessEntry",
  "identity",
  "authorization",
  "version",
];

test("a cluster that grants Starling everything it needs is ok at every link, and each link says what was checked", async () => {
  const links = await check();
  expect(links).toEqual([
    { link: "cluster", state: "ok", value: arn },
    { link: "role", state: "ok", value: spokeRole },
    { link: "externalId", state: "ok", value: externalId },
    { link: "region", state: "ok", value: "eu-west-1" },
    { link: "eks", state: "ok", value: arn },
    { link: "network", state: "ok", value: connection.server },
    { link: "accessEntry", state: "ok", value: spokeRole },
    { link: "identity", state: "ok", value: connection.uid },
    { link: "authorization", state: "ok" },
    { link: "version", state: "ok", value: expect.stringMatching(/^v1\.3\d\./) },
  ]);
});

interface Broken {
  readonly what: string;
  readonly spoil: () => unknown;
  readonly link: string;
  readonly code: string;
  readonly value?: string;
  /** Parts of the finding and of the advice how to repair it. */
  readonly says: readonly string[];
  readonly state?: LinkFinding["state"];
}

const trust = (principalArn: string, id: string | undefined) =>
  world.roles.put({ arn: spokeRole, trusts: [id === undefined ? { principalArn } : { principalArn, externalId: id }] });
const stsSays = (code: string, message: string, status = 403) =>
  world.fail(({ service }) => (service === "sts" ? { status, code, message } : undefined));
const eksSays = (code: string, message: string, status: number) =>
  world.fail(({ service }) => (service === "eks" ? { status, code, message } : undefined));

const broken: readonly Broken[] = [
  {
    what: "a role that does not exist",
    spoil: () => world.roles.put({ arn: spokeRole, trusts: [] }),
    ...{ link: "role", code: "RoleDenied", value: spokeRole },
    says: ["sts:AssumeRole", "aws iam get-role --role-name apply", externalId],
  },
  {
    what: "a role that trusts another installation",
    spoil: () => trust("arn:aws:iam::999988887777:role/other", externalId),
    ...{ link: "role", code: "RoleDenied", value: spokeRole },
    says: ["trusts output ApplyRole", applyArn],
  },
  {
    what: "a role that expects another external id",
    spoil: () => trust(applyArn, "starling.111122223333.us-east-1/c2"),
    ...{ link: "role", code: "RoleDenied", value: spokeRole },
    says: [`the external id ${externalId}`],
  },
  {
    what: "a role that Starling's own may not assume",
    spoil: () =>
      stsSays(
        "AccessDenied",
        "User: x is not authorized because no identity-based policy allows the sts:AssumeRole action",
      ),
    ...{ link: "role", code: "RoleDenied", value: spokeRole },
    says: ["account 444455556666 in clusterAccounts"],
  },
  {
    what: "a role that expects no external id",
    spoil: () => trust(applyArn, undefined),
    ...{ link: "externalId", code: "ExternalIdIgnored", value: externalId },
    says: ["any external id", `"sts:ExternalId": "${externalId}"`],
  },
  {
    what: "a region that the cluster's account has not enabled",
    spoil: () => eksSays("UnrecognizedClientException", "The security token included in the request is invalid.", 403),
    ...{ link: "region", code: "RegionOff", value: "eu-west-1" },
    says: ["aws account enable-region --region-name eu-west-1", "account 444455556666"],
  },
  {
    what: "an STS of Starling's region that the role's account has switched off",
    spoil: () => stsSays("RegionDisabledException", "STS is not activated in this region for account"),
    ...{ link: "role", code: "RegionDisabled", value: spokeRole },
    says: ["us-east-1", "account 444455556666"],
  },
  {
    what: "an STS that does not answer",
    spoil: () => stsSays("InternalFailure", "try again", 500),
    ...{ link: "role", code: "StsUnavailable", state: "unknown" },
    says: ["check again"],
  },
  {
    what: "a cluster that EKS does not know",
    spoil: () => world.clusters.remove(arn),
    ...{ link: "eks", code: "EksClusterNotFound", value: arn },
    says: ["aws eks describe-cluster --name spoke --region eu-west-1"],
  },
  {
    what: "a role that may not describe the cluster",
    spoil: () => eksSays("AccessDeniedException", "not authorized to perform: eks:DescribeCluster", 403),
    ...{ link: "eks", code: "EksDenied", value: arn },
    says: [`allow eks:DescribeCluster on ${arn}`],
  },
  {
    what: "a cluster that is being created",
    spoil: () => setCluster({ status: "CREATING" }),
    ...{ link: "eks", code: "EksClusterNotActive", value: arn },
    says: ["CREATING", "aws eks wait cluster-active --name spoke"],
  },
  {
    what: "an EKS that throttles",
    spoil: () => eksSays("ThrottlingException", "slow down", 429),
    ...{ link: "eks", code: "EksThrottled", state: "unknown" },
    says: ["check again"],
  },
  {
    what: "an address where nothing answers",
    spoil: () => setCluster({ endpoint: "https://127.0.0.1:9" }),
    ...{ link: "network", code: "ECONNREFUSED", value: "https://127.0.0.1:9" },
    says: ["lets everybody ask", "aws eks describe-cluster --name spoke"],
  },
  {
    what: "an allow-list, which cannot have addresses of Starling's functions",
    spoil: () => setCluster({ endpoint: "https://127.0.0.1:9", publicCidrs: ["203.0.113.0/24", "198.51.100.7/32"] }),
    ...{ link: "network", code: "ECONNREFUSED" },
    says: [
      "203.0.113.0/24, 198.51.100.7/32 only",
      "no fixed address",
      'setting zones: [{"name": "fixed", "vpc": {}}]',
      "publicAccessCidrs=0.0.0.0/0",
    ],
  },
  {
    what: "an address in a private network",
    spoil: () => setCluster({ endpoint: "https://127.0.0.1:9", publicAccess: false }),
    ...{ link: "network", code: "ECONNREFUSED" },
    says: [
      "its endpoint is private",
      "the zone home",
      "spec.access.zone",
      "endpointPublicAccess=true,publicAccessCidrs=0.0.0.0/0",
    ],
  },
  {
    what: "another server at the address",
    spoil: async () => {
      const stranger = await startClusterHost({ controllers: "off" });
      setCluster({ caData: stranger.addCluster("x").caData });
      await stranger.stop();
    },
    ...{ link: "network", code: expect.stringMatching(/CERT|SIGNATURE/) as unknown as string },
    says: ["another server than spoke answers there"],
  },
  {
    what: "a missing access entry",
    spoil: () => setCluster({ accessEntries: [] }),
    ...{ link: "accessEntry", code: "Unauthorized", value: spokeRole },
    says: [
      `aws eks create-access-entry --cluster-name spoke --region eu-west-1 --principal-arn ${spokeRole} --kubernetes-groups starling`,
    ],
  },
  {
    what: "a cluster that does not use access entries",
    spoil: () => setCluster({ accessEntries: [], authenticationMode: "CONFIG_MAP" }),
    ...{ link: "accessEntry", code: "Unauthorized" },
    says: ["--access-config authenticationMode=API_AND_CONFIG_MAP"],
  },
  {
    what: "an access entry with another group",
    spoil: () => setCluster({ accessEntries: [{ ...entry, kubernetesGroups: ["viewers"] }] }),
    ...{ link: "authorization", code: "Forbidden" },
    says: [
      "get namespaces kube-system",
      "list anything",
      "get/create/update/delete configmaps in starling-system",
      "starling-rbac.yaml",
    ],
  },
  {
    what: "a ClusterRole that does not permit list",
    spoil: () => withRules("starling", ["get"]),
    ...{ link: "authorization", code: "Forbidden" },
    says: ["Starling may not list anything"],
  },
  {
    what: "a missing binding of the objects that the fleet may have",
    spoil: () => without("starling-fleet"),
    ...{ link: "authorization", code: "FleetForbidden" },
    says: ["get/create/patch/delete configmaps", "and 13 more"],
  },
];

describe("a broken link", () => {
  test.each(broken)(
    "a link that is broken by $what is reported with a remedy",
    async ({ spoil, link, code, value, says, state = "broken" }) => {
      await spoil();
      const links = await check();
      const found = links.find((one) => one.state === "broken" || one.state === "unknown");
      expect(found).toMatchObject({ link, state, code, ...(value === undefined ? {} : { value }) });
      for (const part of says) expect(`${found?.message} ${found?.remedy}`).toContain(part);
      // The links before the broken one are ok and later links are skipped. The last three do not wait for each other.
      const at = ways.indexOf(link);
      const before = ways.slice(0, at).filter((one) => one !== "identity");
      expect(statesOf(links).filter((one) => before.includes(one.split(" ")[0] ?? ""))).toEqual(
        before.map((one) => `${one} ok`),
      );
      if (at < ways.indexOf("identity"))
        expect(statesOf(links).slice(at + 1)).toEqual(ways.slice(at + 1).map((one) => `${one} skipped`));
    },
  );

  test.each([
    ["v1.29.9-eks-1a2b3c4", "broken", "VersionTooOld", "older than 1.30"],
    ["v1.99.0", "limited", "VersionUntested", "newer than 1.36"],
  ])("the link of the version %s is %s", async (version, state, code, message) => {
    const other = host.addCluster("other", { version });
    setCluster({ endpoint: other.server, caData: other.caData });
    expect((await check()).at(-1)).toMatchObject({
      state,
      code,
      value: version,
      message: expect.stringContaining(message),
    });
  });

  test("a link is limited by a spec.kubeVersion that the cluster no longer has", async () => {
    const other = host.addCluster("upgraded", { version: "v1.35.2-eks-1a2b3c4" });
    const versionLink = async (kubeVersion: string) => {
      setCluster({ endpoint: other.server, caData: other.caData });
      return (await check({ ...spec, kubeVersion })).at(-1);
    };
    expect(await versionLink("1.34")).toEqual({
      link: "version",
      value: "v1.35.2-eks-1a2b3c4",
      state: "limited",
      code: "VersionOther",
      message: "spec.kubeVersion is 1.34, for which charts are rendered",
      remedy: 'set spec.kubeVersion of Cluster c1 to "1.35"',
    });
    expect(await versionLink("1.35")).toMatchObject({ state: "ok" });
  });

  test("a link that is broken by another cluster at the address names its uid, and the command that accepts it", async () => {
    const links = await check(spec, { ...clusterRow(spec), status: { conditions: [], uid: "uid-of-before" } });
    expect(links.find(({ link }) => link === "identity")).toMatchObject({
      state: "broken",
      code: "IdentityMismatch",
      value: connection.uid,
      remedy: expect.stringContaining(`starling cluster accept c1 --uid ${connection.uid}`),
    });
  });

  test("the first link is broken if the Cluster was deleted meanwhile", async () => {
    const put: CheckRow = {
      ...keys.check("c1"),
      type: "Check",
      schema: rowSchema,
      version: 1,
      asked: { id: "a", at: "2026-11-23T08:00:00.000Z", by: "ana" },
    };
    await table.write([{ put }]);
    await answerCheck("c1", { table, newWay: () => ({ clock: world.clock, zone: home }) as never });
    expect((await table.get(keys.check("c1")))?.answer?.links).toMatchObject([{ link: "cluster", code: "NotFound" }]);
  });
});

describe("in a zone", () => {
  const fixed: CheckedZone = { own: "fixed", others: [], addresses: ["198.51.100.7", "198.51.100.8"] };
  const spoke: CheckedZone = { own: "spoke", others: [], addresses: [], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
  const unreached = "https://127.0.0.1:9";

  /** The remedy of the zone's workers for the network of a cluster that they do not reach. */
  async function networkFrom(zone: CheckedZone, cluster: Partial<EksCluster>): Promise<string | undefined> {
    setCluster({ endpoint: unreached, ...cluster });
    const zoned = { ...spec, access: { ...spec.access, zone: zone.own } };
    const links = await check(zoned, clusterRow(zoned), zone);
    const named = links.filter(({ link }) => link === "zone").map(({ value }) => value);
    expect(named).toEqual(zone.own === "home" ? [] : [zone.own]);
    return links.find(({ link }) => link === "network")?.remedy;
  }

  test("the remedy for an allow-list is the command that adds the zone's addresses to those that are there", async () => {
    expect(await networkFrom(fixed, { publicCidrs: ["203.0.113.0/24", "198.51.100.8/31"] })).toBe(
      "its public endpoint lets in 203.0.113.0/24, 198.51.100.8/31 only, and the zone fixed comes from 198.51.100.7 and 198.51.100.8: " +
        "aws eks update-cluster-config --name spoke --region eu-west-1 --resources-vpc-config endpointPublicAccess=true,publicAccessCidrs=203.0.113.0/24,198.51.100.8/31,198.51.100.7/32",
    );
    expect(await networkFrom(fixed, { publicCidrs: ["198.51.100.0/24"] })).toContain("did not answer");
  });

  test("the remedy for a private endpoint depends on whether the zone's network may lead there", async () => {
    expect(await networkFrom(fixed, { publicAccess: false })).toContain(
      "publicAccessCidrs=198.51.100.7/32,198.51.100.8/32",
    );
    const remedy = await networkFrom(spoke, { publicAccess: false });
    for (const part of [
      "route tables",
      "aws ec2 describe-security-groups --group-ids sg-0a1b2c3d4e5f60718",
      "cluster security group lets in port 443",
    ])
      expect(remedy).toContain(part);
    expect(await networkFrom({ ...home, others: ["spoke"] }, { publicAccess: false })).toContain(
      "take one of the zones spoke",
    );
  });

  test("workers leave the check of a cluster that moved to another zone to that zone's workers", async () => {
    const zoned = { ...spec, access: { zone: "spoke" } };
    const put: CheckRow = {
      ...{ ...keys.check("c1"), type: "Check", schema: rowSchema, version: 1 },
      asked: { id: "a", at: "2026-11-23T08:00:00.000Z", by: "ana" },
    };
    await table.write([{ put: clusterRow(zoned) }, { put }]);
    for (const zone of [fixed, { ...home, others: ["spoke"] }]) {
      await answerCheck("c1", { table, newWay: () => ({ clock: world.clock, zone }) as never });
      expect(await table.get(keys.check("c1"))).not.toHaveProperty("answer");
    }
  });

  test("a role that refuses the workers of a zone is told to trust the role of that zone", async () => {
    trust("arn:aws:iam::999988887777:role/other", externalId);
    const remedyFrom = async (zone: CheckedZone) =>
      (
        await check(
          zone.own === "home" ? spec : { ...spec, access: { ...spec.access, zone: zone.own } },
          undefined,
          zone,
        )
      ).find(({ link }) => link === "role")?.remedy;
    expect(await remedyFrom({ own: "spoke-eu", others: [], addresses: [] })).toContain(
      "trusts output ZoneSpokeEuRole of the control stack",
    );
    expect(await remedyFrom({ ...home, others: ["spoke-eu"] })).toContain(
      "trusts output ApplyRole of the control stack",
    );
  });

  test("a zone that the installation does not have is a broken link, with the zones that it has", async () => {
    const links = await check({ ...spec, access: { zone: "gone" } }, undefined, { ...home, others: ["fixed"] });
    expect(links.find(({ state }) => state === "broken")).toEqual({
      link: "zone",
      state: "broken",
      value: "gone",
      code: "ZoneNotFound",
      message: "spec.access.zone names a zone that the installation does not have: gone; it has home, fixed",
      remedy: "add gone to the setting zones and deploy, or correct spec.access.zone of Cluster c1",
    });
  });
});

describe("at another address than EKS names", () => {
  const nobody = "https://127.0.0.1:9";
  /** The address of EKS has a path here, unlike in AWS. */
  const unanswered = "https://localhost:9/clusters/spoke";
  const own = () => ({ server: new URL(connection.server).origin });
  const spoke: CheckedZone = { own: "spoke", others: [], addresses: [], securityGroups: ["sg-0a1b2c3d4e5f60718"] };

  /** The finding for the network of a cluster that EKS has at an address where nobody listens. */
  async function networkAt(endpointOverride: EndpointOverride, zone = home, more: Partial<EksCluster> = {}) {
    setCluster({ endpoint: unanswered, ...more });
    const overridden = { eks: { arn, endpointOverride }, access: { ...spec.access, zone: zone.own } };
    const links = await check(overridden, clusterRow(overridden), zone);
    return links.find(({ link }) => link === "network");
  }

  test("the check goes there, and the link names the address and that people wrote it", async () => {
    expect(await networkAt(own())).toEqual({
      link: "network",
      state: "ok",
      value: `${connection.server} (endpointOverride)`,
    });
  });

  test("the remedy for silence names both addresses, and what lies between the zone and the cluster", async () => {
    const asked =
      "spec.eks.endpointOverride.server (https://127.0.0.1:9) is asked in place of https://localhost:9/clusters/spoke";
    expect(await networkAt({ server: nobody })).toMatchObject({
      state: "broken",
      code: "ECONNREFUSED",
      value: "https://127.0.0.1:9/clusters/spoke (endpointOverride)",
      remedy: `${asked}: correct it, or remove spec.eks.endpointOverride; the zone home reaches public addresses only: for others, name a zone in spec.access.zone`,
    });
    expect((await networkAt({ server: nobody }, spoke))?.remedy).toBe(
      `${asked}: correct it, or remove spec.eks.endpointOverride; see that it leads to spoke from the zone spoke: ` +
        "look at the route tables of the zone's subnets (setting zones, spoke), and whether its security group lets requests out: " +
        "aws ec2 describe-security-groups --group-ids sg-0a1b2c3d4e5f60718 --query SecurityGroups[].IpPermissionsEgress",
    );
    expect((await networkAt({ server: nobody }, { ...home, own: "fixed" }))?.remedy).toContain(
      "see that it leads to spoke from the zone fixed: its network is the VPC that the setting zones makes",
    );
  });

  test("the remedy for a wrong name says which name was expected", async () => {
    expect(await networkAt({ ...own(), tlsServerName: "api.example" })).toMatchObject({
      state: "broken",
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
      remedy: expect.stringContaining("its certificate is not for api.example: let the address lead to spoke itself"),
    });
    expect(await networkAt(own(), home, { endpoint: "https://eks.example/clusters/spoke" })).toMatchObject({
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
      remedy: expect.stringContaining("its certificate is not for the host of https://eks.example/clusters/spoke"),
    });
  });

  test("the remedy for a server by another authority is a way without a proxy that ends TLS", async () => {
    const { cert } = await createTlsCertificate();
    const caData = Buffer.from(cert).toString("base64");
    expect(await networkAt(own(), home, { caData })).toMatchObject({
      state: "broken",
      remedy: expect.stringContaining("another server than spoke answers there: let it lead to the API server itself"),
    });
  });

  test("an address that no cluster has is refused with the address", async () => {
    expect(await networkAt({ server: "https://169.254.169.254" })).toMatchObject({
      state: "broken",
      code: "AddressRefused",
      message: expect.stringContaining("169.254.169.254 is a link-local or reserved address"),
      remedy: expect.stringContaining("spec.eks.endpointOverride.server (https://169.254.169.254) is asked"),
    });
  });
});

test("missing permissions that most fleets grant are reported, and do not count as broken", async () => {
  await withRules("starling-fleet", ["get", "list", "create", "patch"]);
  expect((await check()).find(({ link }) => link === "authorization")).toMatchObject({
    state: "limited",
    code: "FleetForbidden",
    message: expect.stringMatching(
      /^manifests of a fleet may not delete configmaps, delete limitranges, .* and \d+ more$/,
    ),
  });
});

test("a cluster without a role has no link for one, and an administrator by an EKS policy is allowed everything", async () => {
  const arnAtHome = homeCluster("spoke");
  world.addCluster(arnAtHome, { endpoint: connection.server, caData: connection.caData });
  const links = await check({ eks: { arn: arnAtHome } });
  expect(statesOf(links).slice(0, 5)).toEqual([
    "cluster ok",
    "region ok",
    "eks ok",
    "network ok",
    "accessEntry broken",
  ]);
});

describe("a Cluster with an endpoint and a secret", () => {
  const own = () => ({ server: connection.server, caData: connection.caData });
  const ownSpec = (): ClusterSpec => ({ endpoint: { ...own(), token: { secret: "starling/clusters/c1" } } });

  test("the secret is a link of its own, and an administrator's token has all permissions", async () => {
    secret = async () => JSON.stringify({ ...own(), token: connection.token });
    expect(statesOf(await check(ownSpec()))).toEqual([
      "cluster ok",
      "secret ok",
      "network ok",
      "identity ok",
      "authorization ok",
      "version ok",
    ]);
  });

  test.each([
    [
      "is for another cluster",
      () => JSON.stringify({ server: "https://other.example.com", token: "t" }),
      "SecretMismatch",
    ],
    ["names no cluster", () => "a-bare-token", "SecretUnbound"],
    ["is refused by the cluster", () => JSON.stringify({ ...own(), token: "old" }), "Unauthorized"],
  ])("a secret that %s is the broken link", async (_what, text, code) => {
    secret = async () => text();
    const found = (await check(ownSpec())).find(({ state }) => state === "broken");
    expect(found).toMatchObject({ link: "secret", code, value: "starling/clusters/c1" });
    expect(found?.remedy).toContain("aws secretsmanager put-secret-value --secret-id starling/clusters/c1");
    expect(JSON.stringify(found)).not.toContain("a-bare-token");
  });
});
