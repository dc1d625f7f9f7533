/** Documents and manifests that several end-to-end tests use. */
import type * as z from "zod";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { sourceSpec } from "#shared/fleet/kinds/source.ts";
import type { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { type NewCluster, namespace } from "#test/support/e2e-world.ts";

export type SourceInput = z.input<typeof sourceSpec>;
export type GroupInput = z.input<typeof syncGroupSpec>;

export function sourceDocument(name: string, spec: SourceInput) {
  return { apiVersion: ourApiVersion, kind: "Source", metadata: { name, namespace }, spec };
}

export function groupDocument(name: string, spec: GroupInput) {
  return { apiVersion: ourApiVersion, kind: "SyncGroup", metadata: { name, namespace }, spec };
}

/** The clusters of each ring, such as canary-1 and canary-2, with a label for the ring. */
export function ringsOf(counts: Readonly<Record<string, number>>): NewCluster[] {
  return Object.entries(counts).flatMap(([ring, count]) =>
    Array.from({ length: count }, (_, index) => ({ name: `${ring}-${index + 1}`, labels: { ring } })),
  );
}

/** One stage per ring, in this order. The last stage takes all remaining clusters. */
export function ringStages(...rings: readonly string[]): NonNullable<GroupInput["rollout"]>["stages"] {
  return rings.map((ring, index) =>
    index === rings.length - 1 ? { name: ring } : { name: ring, clusters: { selector: { matchLabels: { ring } } } },
  );
}

export function configMap(name: string, data: Readonly<Record<string, string>>): string {
  return yaml({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data });
}

export const namespaceManifest = yaml({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });

export function deployment(name: string, image: string): string {
  const labels = { app: name };
  return yaml({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name, image }] } },
    },
  });
}

/** JSON is valid YAML. */
export function yaml(object: unknown): string {
  return `---\n${JSON.stringify(object, null, 2)}\n`;
}
