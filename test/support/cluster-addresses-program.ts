/**
 * Runs in a network of its own (see worker-addresses.test.ts): a server at each address, and Clusters that lead there. It
 * prints, for each of them, what the connector said and which servers it connected to.
 */
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { workerAddresses } from "#shared/adapters/net/address-rules.ts";
import { errorCode } from "#shared/base/errors.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { certificateBy, startCountingServer } from "#test/support/counting-server.ts";
import { installation, spokeCluster, startEksWorld } from "#test/support/eks-world.ts";

export interface Asked {
  readonly host: string;
  /** How the Cluster names the host. */
  readonly by: "endpoint" | "override" | "eks";
  /** The uid that the server gave, or the code of the error. */
  readonly answer: string;
  /** The addresses of the servers that got a connection. */
  readonly connected: readonly string[];
}

const port = 8443;
const name = "abcdef0123.gr7.eu-west-1.eks.amazonaws.com";
const arn = spokeCluster("spoke");

async function askAll(addresses: readonly string[], hosts: readonly string[]): Promise<readonly Asked[]> {
  const authority = await createTlsCertificate();
  const certificate = await certificateBy(authority, [name, ...hosts]);
  const caData = Buffer.from(authority.cert).toString("base64");
  const answer = { metadata: { name: "kube-system", uid: "reached" } };
  const servers = new Map<string, Awaited<ReturnType<typeof startCountingServer>>>();
  for (const address of addresses)
    servers.set(address, await startCountingServer(answer, certificate, { address, port }));
  const asked: Asked[] = [];
  for (const host of hosts) {
    const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
    const specs = {
      endpoint: { endpoint: { server, caData, tlsServerName: name, token: { secret: "s" } } },
      override: { eks: { arn, endpointOverride: { server } }, access: { role: { name: "starling/clusters/apply" } } },
      eks: { eks: { arn }, access: { role: { name: "starling/clusters/apply" } } },
    } as const satisfies Record<Asked["by"], ClusterSpec>;
    const world = await startEksWorld();
    for (const by of ["endpoint", "override", "eks"] as const) {
      world.addCluster(arn, { endpoint: by === "override" ? `https://${name}` : server, caData });
      const secret = clusterSecret({ server, caData, tlsServerName: name, token: "header.payload.signature" });
      const connector = new KubeConnector({
        secrets: { read: async () => secret },
        ...{ eks: world.access(), clock: world.clock, installation, zone: "home" },
        addresses: workerAddresses(""),
      });
      const before = new Map([...servers].map(([address, { connections }]) => [address, connections()]));
      const client = await connector.connect(clusterRow(specs[by]), new Date(world.clock.now().getTime() + 20_000));
      const said = await clusterUidOf(client).catch((error: unknown) =>
        error instanceof KubeError ? error.reason : errorCode(error),
      );
      const connected = [...servers].filter(([address, { connections }]) => connections() > (before.get(address) ?? 0));
      asked.push({ host, by, answer: said ?? "", connected: connected.map(([address]) => address) });
    }
    await world.stop();
  }
  return asked;
}

const { addresses, hosts } = JSON.parse(process.argv[2] ?? "{}");
process.stdout.write(JSON.stringify(await askAll(addresses, hosts)), () => process.exit(0));
