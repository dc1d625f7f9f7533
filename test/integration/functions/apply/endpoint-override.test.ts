/** An EKS cluster at another address than EKS names: who gets the token, and who gets no byte of it. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { createTlsCertificate, type TlsCertificate } from "#local/base/tls-certificate.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { EndpointOverride } from "#shared/fleet/kinds/cluster.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { type CountingServer, certificateBy, startCountingServer } from "#test/support/counting-server.ts";
import { installation, spokeCluster, startEksWorld } from "#test/support/eks-world.ts";
import { forAllTests, forEachTest } from "#test/support/for-tests.ts";

const arn = spokeCluster("spoke");
/** The host that EKS names. Nobody answers there. */
const eksHost = "abcdef0123.gr7.eu-west-1.eks.amazonaws.com";
/** How a token of EKS begins. */
const tokenStart = "k8s-aws-v1.";
const kubeSystem = { metadata: { name: "kube-system", uid: "1" } };

const authorities = forAllTests(async () => {
  const [own, strange] = await Promise.all([createTlsCertificate(), createTlsCertificate([eksHost])]);
  return { own, strange, stop: () => {} };
});
const world = forEachTest(startEksWorld);
let connector: KubeConnector;
let servers: CountingServer[];
beforeEach(() => {
  servers = [];
  putCluster(authorities.own);
  connector = new KubeConnector({
    secrets: { read: () => Promise.reject(new Error("no secret is to be read")) },
    eks: world.access(),
    clock: world.clock,
    installation,
    addresses: clusterAddresses,
    zone: "home",
  });
});
afterEach(async () => {
  for (const server of servers) await server.stop();
});

function putCluster({ cert }: TlsCertificate): void {
  world.addCluster(arn, { endpoint: `https://${eksHost}`, caData: Buffer.from(cert).toString("base64") });
}

async function serverWith(tls?: TlsCertificate): Promise<CountingServer> {
  const server = await startCountingServer(kubeSystem, tls);
  servers.push(server);
  return server;
}

/** The Cluster, which people have written `generation` times. */
function overridden(endpointOverride: EndpointOverride | undefined, generation = 1) {
  const eks = { arn, ...(endpointOverride === undefined ? {} : { endpointOverride }) };
  return { ...clusterRow({ eks, access: { role: { name: "starling/clusters/apply" } } }), generation };
}

async function uidBy(endpointOverride: EndpointOverride, generation?: number): Promise<string | undefined> {
  const deadline = new Date(world.clock.now().getTime() + 60_000);
  return clusterUidOf(await connector.connect(overridden(endpointOverride, generation), deadline));
}

const at = ({ port }: CountingServer, host = "127.0.0.1") => ({ server: `https://${host}:${port}` });

describe("a server that is the cluster's", () => {
  test("the server gets the token at another address, when it has a certificate for the name that EKS names", async () => {
    const server = await serverWith(await certificateBy(authorities.own, [eksHost]));
    expect(await uidBy(at(server))).toBe("1");
    expect(server.received()).toContain(`authorization: Bearer ${tokenStart}`);
  });

  test("the server gets the token under the name that the Cluster gives, which its certificate has", async () => {
    const server = await serverWith(await certificateBy(authorities.own, ["kubernetes.default.svc"]));
    expect(await uidBy({ ...at(server, "localhost"), tlsServerName: "kubernetes.default.svc" })).toBe("1");
  });

  test("the address that is remembered stays the one of EKS, and one DescribeCluster serves every address", async () => {
    const certificate = await certificateBy(authorities.own, [eksHost]);
    for (let generation = 1; generation <= 3; generation++) {
      const server = await serverWith(certificate);
      expect(await uidBy(at(server), generation)).toBe("1");
      expect(connector.newAddress(overridden(at(server)))).toMatchObject({ server: `https://${eksHost}` });
    }
    expect(world.count("eks DescribeCluster")).toBe(1);
  });

  test("a cluster whose authority is new in EKS is found again at its other address", async () => {
    const server = await serverWith(await certificateBy(authorities.strange, [eksHost]));
    await expect(uidBy(at(server))).rejects.toMatchObject({ class: "unreachable" });
    putCluster(authorities.strange);
    world.pass(2);
    expect(await uidBy(at(server))).toBe("1");
  });
});

describe("a server that is not the cluster's", () => {
  const rows: readonly (readonly [
    what: string,
    certificate: () => Promise<TlsCertificate | undefined>,
    override: { readonly host?: string; readonly tlsServerName?: string },
  ])[] = [
    ["with the right name by another authority", () => certificateBy(authorities.strange, [eksHost]), {}],
    ["with a certificate of its own", async () => authorities.strange, {}],
    ["by the authority of the cluster for its address only", () => certificateBy(authorities.own, []), {}],
    [
      "by the authority of the cluster for the name in the address",
      () => certificateBy(authorities.own, ["localhost"]),
      { host: "localhost" },
    ],
    [
      "by the authority of the cluster for another name than the Cluster gives",
      () => certificateBy(authorities.own, [eksHost, "node-1.example"]),
      { tlsServerName: "node-2.example" },
    ],
    ["without TLS", async () => undefined, {}],
  ];
  test.each(rows)("a server %s gets no byte of the token", async (_what, certificate, { host, tlsServerName }) => {
    const server = await serverWith(await certificate());
    const override = { ...at(server, host), ...(tlsServerName === undefined ? {} : { tlsServerName }) };
    const error: unknown = await uidBy(override).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(KubeError);
    expect(server.connections()).toBeGreaterThan(0);
    // Without TLS, the beginning of the handshake arrives.
    if ((await certificate()) !== undefined) expect(server.received()).toBe("");
    expect(server.received()).not.toMatch(/authorization|k8s-aws/i);
    expect(`${errorMessage(error)} ${JSON.stringify(error)} ${String((error as Error).stack)}`).not.toContain(
      tokenStart,
    );
  });

  test("a connection to the cluster does not vouch for the next address", async () => {
    const good = await serverWith(await certificateBy(authorities.own, [eksHost]));
    expect(await uidBy(at(good), 1)).toBe("1");
    const evil = await serverWith(await certificateBy(authorities.strange, [eksHost]));
    await expect(uidBy(at(evil), 2)).rejects.toMatchObject({ class: "unreachable" });
    expect([evil.connections() > 0, evil.received()]).toEqual([true, ""]);
  });
});
