import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import { beforeEach, describe, expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import type { SecretReader } from "#shared/ports.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forAllTests, forEachTest } from "#test/support/for-tests.ts";
import { type RecordingServer, startRecordingServer } from "#test/support/recording-server.ts";

const systemOf = (uid: string) => ({ body: { metadata: { name: "kube-system", uid } } });
const server = forAllTests(() => startRecordingServer(() => systemOf("1")));

const noEks = new EksAccess({
  sts: new STSClient({ region: "eu-west-1" }),
  eks: () => new EKSClient({ region: "eu-west-1" }),
  clock: systemClock,
  installation: "test",
});

const evil = forAllTests(() => startRecordingServer(() => ({})));
const secret = "starling/clusters/c1";
const token = "header.payload.signature";
const installation = "starling.111122223333.eu-west-1";
const inAMinute = () => new Date(Date.now() + 60_000);

/** A connector that reads `text` for every secret. */
function connectorWith(text: (freshness: string) => string) {
  const read: SecretReader["read"] = async (_name, { fresh } = {}) => text(fresh ? "fresh" : "kept");
  return new KubeConnector({
    secrets: { read },
    eks: noEks,
    clock: systemClock,
    installation,
    addresses: clusterAddresses,
    zone: "home",
  });
}

function endpointOf(at: { readonly url: string; readonly caData: string }) {
  return { server: at.url, caData: at.caData, token: { secret } };
}

function prodSecret() {
  return clusterSecret({ server: server.url, caData: server.caData, token });
}

function clientWith(text: string, more: { readonly server?: string; readonly caData?: string } = {}) {
  return connectorWith(() => text).connect(clusterRow({ endpoint: { ...endpointOf(server), ...more } }), inAMinute());
}

describe("the token of a secret", () => {
  test("the token is sent to the cluster that the secret names", async () => {
    await clusterUidOf(await clientWith(prodSecret()));
    expect(server.requests.at(-1)?.headers.authorization).toBe(`Bearer ${token}`);
  });

  test.each<[string, () => NonNullable<ClusterSpec["endpoint"]>, string]>([
    ["to another address", () => endpointOf(evil), '"server"'],
    ["with another authority", () => ({ ...endpointOf(server), caData: evil.caData }), '"caData"'],
    ["with the public authorities", () => ({ server: server.url, token: { secret } }), '"caData"'],
    ["under another name", () => ({ ...endpointOf(server), tlsServerName: "api.example.com" }), '"tlsServerName"'],
    ["to another path", () => ({ ...endpointOf(server), server: `${server.url}/mine` }), '"server"'],
  ])("the token is not sent %s: no connection is opened", async (_what, endpoint, field) => {
    const before = [server.connections(), evil.connections()];
    const client = await connectorWith(prodSecret).connect(clusterRow({ endpoint: endpoint() }), inAMinute());
    await expect(clusterUidOf(client)).rejects.toMatchObject({
      code: "SecretMismatch",
      retry: "transient",
      data: { secret },
      message: expect.stringContaining(`secret ${secret} is for another cluster`),
    });
    await expect(clusterUidOf(client)).rejects.toMatchObject({ message: expect.stringContaining(`its ${field} is`) });
    await expect(clusterUidOf(client)).rejects.toMatchObject({ message: expect.not.stringContaining(token) });
    expect([server.connections(), evil.connections()]).toEqual(before);
  });

  test.each<[string, () => NonNullable<ClusterSpec["endpoint"]>]>([
    ["address", () => endpointOf(evil)],
    ["path", () => ({ ...endpointOf(server), server: `${server.url}/mine` })],
    ["authority", () => ({ ...endpointOf(server), caData: evil.caData })],
    ["name", () => ({ ...endpointOf(server), tlsServerName: "api.example.com" })],
  ])(
    "the token is not sent when the Cluster's %s was changed while its connection was kept",
    async (_what, endpoint) => {
      const connector = connectorWith(prodSecret);
      const row = clusterRow({ endpoint: endpointOf(server) });
      await clusterUidOf(await connector.connect(row, inAMinute()));
      const before = evil.connections();
      for (const generation of [row.generation, row.generation + 1]) {
        const changed = { ...row, generation, spec: { endpoint: endpoint() } };
        const client = await connector.connect(changed, inAMinute());
        await expect(clusterUidOf(client)).rejects.toMatchObject({ code: "SecretMismatch" });
      }
      expect(evil.connections()).toBe(before);
      await clusterUidOf(await connector.connect(row, inAMinute()));
    },
  );

  test("the token is not sent when the secret was changed while the connection was kept", async () => {
    let text = prodSecret();
    const connector = connectorWith(() => text);
    const client = await connector.connect(clusterRow({ endpoint: endpointOf(server) }), inAMinute());
    await clusterUidOf(client);
    text = clusterSecret({ server: evil.url, caData: evil.caData, token });
    const before = server.requests.length;
    await expect(clusterUidOf(client)).rejects.toMatchObject({ code: "SecretMismatch" });
    expect(server.requests.length).toBe(before);
  });

  test("the token is not sent to the address to which the cluster redirects", async () => {
    const moved = await startRecordingServer(() => ({ status: 307, headers: { location: `${evil.url}/api` } }));
    try {
      const before = evil.connections();
      const text = clusterSecret({ server: moved.url, caData: moved.caData, token });
      const client = await connectorWith(() => text).connect(clusterRow({ endpoint: endpointOf(moved) }), inAMinute());
      await expect(clusterUidOf(client)).rejects.toThrow();
      expect(moved.requests.length).toBeGreaterThan(0);
      expect(evil.connections()).toBe(before);
    } finally {
      await moved.stop();
    }
  });

  test("the token is read anew only when the cluster refuses the one that is kept", async () => {
    const asked: string[] = [];
    const picky = await startRecordingServer(({ headers }) =>
      headers.authorization === "Bearer new"
        ? systemOf("1")
        : { status: 401, body: { kind: "Status", status: "Failure", code: 401, reason: "Unauthorized" } },
    );
    try {
      const text = (freshness: string) => {
        asked.push(freshness);
        return clusterSecret({ server: picky.url, caData: picky.caData, token: freshness === "fresh" ? "new" : "old" });
      };
      const client = await connectorWith(text).connect(clusterRow({ endpoint: endpointOf(picky) }), inAMinute());
      expect(await clusterUidOf(client)).toBe("1");
      expect(asked).toEqual(["kept", "fresh"]);
    } finally {
      await picky.stop();
    }
  });

  test("the token is read anew when the kept secret names no cluster, and is sent if the new one does", async () => {
    const asked: string[] = [];
    const connector = connectorWith((freshness) => {
      asked.push(freshness);
      return freshness === "fresh" ? prodSecret() : token;
    });
    const client = await connector.connect(clusterRow({ endpoint: endpointOf(server) }), inAMinute());
    expect(await clusterUidOf(client)).toBe("1");
    expect(asked).toEqual(["kept", "fresh"]);
  });

  test.each([
    ["is a bare token", token],
    ["has a token and names no cluster", JSON.stringify({ token })],
  ])("the token is sent to no cluster when the secret %s, and the error says how to repair it", async (_what, text) => {
    const before = server.connections();
    await expect(clusterUidOf(await clientWith(text))).rejects.toMatchObject({
      code: "SecretUnbound",
      message: expect.stringMatching(
        /^secret starling\/clusters\/c1 does not say which cluster it is for.* write \{"server":"https:\/\/127\.0\.0\.1:\d+","caData":"<that of spec\.endpoint>","token":"<the token>"\} into FILE, then: aws secretsmanager put-secret-value --secret-id starling\/clusters\/c1 --secret-string file:\/\/FILE$/,
      ),
    });
    expect(server.connections()).toBe(before);
  });
});

test("the connections to several clusters are kept at the same time", async () => {
  const others = await Promise.all([1, 2, 3].map((uid) => startRecordingServer(() => systemOf(`${uid}`))));
  try {
    const byUrl = new Map(
      others.map((one) => [one.url, clusterSecret({ server: one.url, caData: one.caData, token })]),
    );
    const read = async (name: string) => byUrl.get(name) ?? "";
    const connector = new KubeConnector({
      secrets: { read },
      eks: noEks,
      clock: systemClock,
      installation,
      addresses: clusterAddresses,
      zone: "home",
    });
    const rows = others.map((one, index) => ({
      ...clusterRow({ endpoint: { ...endpointOf(one), token: { secret: one.url } } }),
      uid: `uid-${index}`,
    }));
    for (let round = 0; round < 3; round++) {
      for (const row of rows) await clusterUidOf(await connector.connect(row, inAMinute()));
    }
    expect(others.map((one) => [one.requests.length, one.connections()])).toEqual([
      [3, 1],
      [3, 1],
      [3, 1],
    ]);
  } finally {
    for (const one of others) await one.stop();
  }
});

describe("the connections of a run", () => {
  const own = forEachTest(() => startRecordingServer(() => systemOf("1")));
  let row: ClusterRow;
  let connector: KubeConnector;
  beforeEach(() => {
    connector = connectorWith(() => clusterSecret({ server: own.url, caData: own.caData, token }));
    row = clusterRow({ endpoint: endpointOf(own) });
  });

  /** Sends eight requests at once, like a worker. */
  async function check(generation = 1): Promise<void> {
    const client = await connector.connect({ ...row, generation }, inAMinute());
    await Promise.all(Array.from({ length: 8 }, () => clusterUidOf(client)));
  }

  test("the connections are closed when the work has ended, and opened anew with a TLS session for the next", async () => {
    for (const [opened, resumed] of [
      [8, 0],
      [16, 8],
    ]) {
      await connector.during(() => check());
      expect([own.connections(), own.resumed()]).toEqual([opened, resumed]);
      await expect.poll(() => own.open()).toBe(0);
    }
  });

  test("the connections are closed when the work has failed", async () => {
    const failed = connector.during(() => check().then(() => Promise.reject(new Error("no"))));
    await expect(failed).rejects.toThrow("no");
    await expect.poll(() => own.open()).toBe(0);
  });

  test("the connections are closed, too, if the Cluster was changed meanwhile", async () => {
    await connector.during(async () => {
      await check(1);
      await check(2);
      expect(own.open()).toBe(16);
    });
    await expect.poll(() => own.open()).toBe(0);
  });

  test("the connections serve other work in progress until the last work has ended", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const longer = connector.during(async () => {
      await check();
      await promise;
      await check();
    });
    await connector.during(() => check());
    resolve();
    await longer;
    expect(own.connections()).toBe(8);
    await expect.poll(() => own.open()).toBe(0);
  });
});

/** A cluster that serves `kinds` kinds: `K0`, `K1` and so on. */
function startServing(kinds: number) {
  const resources = Array.from({ length: kinds }, (_, n) => ({
    ...{ resource: `k${n}`, responseKind: { kind: `K${n}` }, scope: "Namespaced", operations: ["list"] },
  }));
  const documentOf = (items: readonly unknown[]) =>
    JSON.stringify({ kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items });
  const versions = [{ version: "v1", freshness: "Current", resources }];
  const all = documentOf([{ metadata: { name: "example.com" }, versions }]);
  const none = documentOf([]);
  return startRecordingServer(({ url }) => ({ body: url === "/apis" ? all : none }));
}

/** Counts how often one connector asks a cluster for the kinds that it serves. */
function countDiscoveries(server: RecordingServer) {
  const connector = connectorWith(() => clusterSecret({ server: server.url, caData: server.caData, token }));
  const row = clusterRow({ endpoint: endpointOf(server) });
  return {
    connect: (uid: string) => connector.connect({ ...row, uid }, inAMinute()),
    async discoveriesOf(uid: string) {
      const before = server.requests.length;
      const client = await connector.connect({ ...row, uid }, inAMinute());
      expect(await client.lookup({ group: "example.com", kind: "K0" })).toMatchObject({ outcome: "found" });
      return server.requests.slice(before).filter(({ url }) => url === "/apis").length;
    },
  };
}

describe("the kinds of many clusters", () => {
  const own = forEachTest(() => startServing(1));

  test("the kinds of the clusters that were not worked on for longest are forgotten", async () => {
    const { connect, discoveriesOf } = countDiscoveries(own);
    let others = 0;
    const connectToOthers = async (count: number) => {
      for (const end = others + count; others < end; others += 1) await connect(`other-${others}`);
    };
    expect(await discoveriesOf("c1")).toBe(1);
    await connectToOthers(500);
    expect(await discoveriesOf("c1")).toBe(0);
    await connectToOthers(999);
    expect(await discoveriesOf("c1")).toBe(0);
    await connectToOthers(1000);
    expect(await discoveriesOf("c1")).toBe(1);
  });
});

describe("the kinds of clusters that have many", () => {
  const own = forEachTest(() => startServing(10_000));

  test("the kinds of the clusters that were not worked on for longest are forgotten", async () => {
    const { discoveriesOf } = countDiscoveries(own);
    const discoveriesOfAll = async (uids: readonly string[]) => {
      const asked: number[] = [];
      for (const uid of uids) asked.push(await discoveriesOf(uid));
      return asked.join("");
    };
    const ten = Array.from({ length: 10 }, (_, n) => `c${n}`);
    expect(await discoveriesOfAll(ten)).toBe("1111111111");
    expect(await discoveriesOfAll(ten)).toBe("0000000000");
    expect(await discoveriesOfAll(["more", "more"])).toBe("10");
    expect(await discoveriesOfAll([...ten.slice(1), "c0"])).toBe("0000000001");
  });
});

/** The schema refuses all of these, but rows may be older than the schema. */
test.each<[string, ClusterSpec, string]>([
  ["no address", {}, "the Cluster has neither eks nor endpoint; apply it again"],
  [
    "an ARN of something else",
    { eks: { arn: "arn:aws:s3:::c1" } },
    "the Cluster has spec.eks.arn arn:aws:s3:::c1, which is no ARN of a cluster; apply it again",
  ],
])("a Cluster with %s is not connected to until it is repaired", async (_what, spec, message) => {
  const refusal = { code: "InvalidCluster", retry: "permanent", message };
  await expect(connectorWith(prodSecret).connect(clusterRow(spec), inAMinute())).rejects.toMatchObject(refusal);
});

test.each([
  ["https://169.254.169.254"],
  ["https://0xa9fea9fe"],
  ["https://[::ffff:169.254.169.254]"],
  ["https://[fd00:ec2::254]"],
  ["https://[64:ff9b::a9fe:a9fe]"],
  ["https://0.0.0.0"],
])("a cluster at %s is refused before anything is sent", async (server) => {
  const client = await clientWith(prodSecret(), { server });
  await expect(clusterUidOf(client)).rejects.toMatchObject({
    code: "AddressRefused",
    message: expect.stringMatching(
      /^Starling does not connect to .*: .* is a link-local or reserved address; correct the URL$/,
    ),
  });
});

/** The schema refuses these authorities, but rows may be older than the schema. */
test.each([
  ["", "is empty, so that the connection would trust the public authorities"],
  [" ", "is empty"],
  ["bm9uZQ==", "contains no PEM certificate"],
])("a certificate authority %j never makes the connection trust the public authorities", async (caData, expected) => {
  await expect(clientWith(prodSecret(), { caData })).rejects.toMatchObject({
    code: "InvalidAuthority",
    message: expect.stringContaining(`the certificate authority of ${server.url} (caData) ${expected}`),
  });
});
