import type { ClusterConnection } from "@starling/embedded-apiserver";
import type { ApiSession } from "#local/machine/api-session.ts";
import type { Machine } from "#local/machine/machine.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";

export interface RegisteredCluster {
  readonly connection: ClusterConnection;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly values?: Values | undefined;
  /** The zone whose workers reach it. The default is `home`. */
  readonly zone?: string | undefined;
}

/** The API accepts a megabyte per request, and a Cluster needs one kilobyte. */
const atOnce = 500;
/** Connections are opened one after another, and on a busy machine too many would time out. */
const secretsAtOnce = 16;

/** Registers clusters of this machine as an operator does: the token in a secret, the rest in a Cluster. */
export async function registerClusters(
  clusters: readonly RegisteredCluster[],
  machine: Pick<Machine, "putSecret">,
  session: ApiSession,
): Promise<void> {
  for (const part of inParts(clusters, atOnce)) await registerPart(part, machine, session);
}

async function registerPart(
  clusters: readonly RegisteredCluster[],
  machine: Pick<Machine, "putSecret">,
  session: ApiSession,
): Promise<void> {
  await runConcurrently(clusters, secretsAtOnce, ({ connection }) =>
    machine.putSecret(tokenSecret(connection.name), clusterSecret(connection)),
  );
  await session.apply(
    clusters.map(({ connection, labels, values, zone }) => ({
      apiVersion: ourApiVersion,
      kind: "Cluster",
      metadata: { name: connection.name, ...defined({ labels }) },
      spec: {
        endpoint: {
          server: connection.server,
          caData: connection.caData,
          token: { secret: tokenSecret(connection.name) },
        },
        ...(zone === undefined ? {} : { access: { zone } }),
        ...defined({ values }),
      },
    })),
  );
}

function tokenSecret(cluster: string): string {
  return `starling/clusters/${cluster}`;
}
