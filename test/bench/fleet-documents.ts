import type { Stack } from "#local/machine/stack.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";

/** A Source that is polled when it is pushed to, and a group of every cluster. */
export function fleetDocuments(stack: Pick<Stack, "git" | "gitSpec">, rollout: unknown): readonly unknown[] {
  const metadata = { name: "app", namespace: "bench" };
  const git = { ...stack.gitSpec(stack.git.url("app")), ref: { branch: "main" } };
  return [
    { apiVersion: ourApiVersion, kind: "Source", metadata, spec: { git, interval: "1h" } },
    {
      apiVersion: ourApiVersion,
      kind: "SyncGroup",
      metadata,
      spec: {
        clusters: { all: true },
        templates: [{ name: "app", source: "app", path: "deploy", apply: { interval: "1h" } }],
        rollout,
      },
    },
  ];
}

/** Returns twenty objects, two of them Deployments. Every revision changes half of them. */
export function twentyObjects(revision: string): string {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "bench" } };
  const configs = Array.from({ length: 16 }, (_, index) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `settings-${index}`, namespace: "bench" },
    data: { value: index % 2 === 0 ? revision : "same" },
  }));
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "web", namespace: "bench" } };
  const workloads = ["web", "worker"].map((name) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "bench" },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { serviceAccountName: "web", containers: [{ name, image: `registry.example/${name}:${revision}` }] },
      },
    },
  }));
  return [namespace, account, ...configs, ...workloads].map((object) => JSON.stringify(object)).join("\n---\n");
}
