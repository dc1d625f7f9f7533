/** Writes the Source and the SyncGroup of a repository for the clusters of a machine. */
import type { FolderShape, ShapeCluster } from "#local/git/folder-shape.ts";
import type { UserRepository } from "#local/git/user-repository.ts";
import { rings } from "#local/machine/rings.ts";
import { defined } from "#shared/base/defined.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { GitUpstream } from "#shared/fleet/kinds/source.ts";

export interface FleetWish {
  readonly namespace: string;
  /** The name of both documents. */
  readonly name: string;
  readonly git: Pick<GitUpstream, "url" | "credentials">;
  readonly ref: UserRepository["ref"];
  readonly shape: Pick<FolderShape, "path" | "isChart">;
  readonly clusters: readonly ShapeCluster[];
}

export interface FleetDocuments {
  readonly source: object;
  readonly group: object;
}

/** The namespace in which `kubectl apply` puts objects without a namespace. */
const defaultNamespace = "default";

export function fleetDocuments({ namespace, name, git, ref, shape, clusters }: FleetWish): FleetDocuments {
  const stages = ringStages(clusters);
  const metadata = { name, namespace };
  return {
    source: {
      apiVersion: ourApiVersion,
      kind: "Source",
      metadata,
      spec: { git: { url: git.url, ...defined({ ref, credentials: git.credentials }) }, interval: "1m" },
    },
    group: {
      apiVersion: ourApiVersion,
      kind: "SyncGroup",
      metadata,
      spec: {
        clusters: { all: true },
        templates: [
          {
            name: "app",
            source: name,
            path: shape.path,
            ...(shape.isChart ? { render: { helm: {} } } : {}),
            apply: { defaultNamespace },
          },
        ],
        ...(stages.length < 2 ? {} : { rollout: { stages } }),
      },
    },
  };
}

/** One stage per ring that has clusters. The last stage takes all other clusters. */
function ringStages(clusters: readonly ShapeCluster[]): readonly object[] {
  const found = rings.filter((ring) => clusters.some(({ labels }) => labels.ring === ring));
  return found.map((ring, index) =>
    index === found.length - 1 ? { name: ring } : { name: ring, clusters: { selector: { matchLabels: { ring } } } },
  );
}
