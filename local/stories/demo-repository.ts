/** The repository of the demo: one application, as a kustomize base with an overlay per ring. */
import type { FileChanges } from "#local/git/repository.ts";
import { rings } from "#local/machine/rings.ts";

const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
`;

const service = `apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`;

const settings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
data:
  checkout-timeout: "30"
`;

function deployment(image: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: ${image}
          ports: [{containerPort: 8080}]
`;
}

function overlay(ring: string): string {
  return `resources: [../../base]
labels:
  - pairs: {ring: ${ring}}
`;
}

const replicas = `- op: replace
  path: /spec/replicas
  value: 3
`;

/** The commits of the demo, in their order. */
export const demoCommits = {
  first: {
    "base/kustomization.yaml": "resources: [namespace.yaml, settings.yaml, service.yaml, deployment.yaml]\n",
    "base/namespace.yaml": namespace,
    "base/settings.yaml": settings,
    "base/service.yaml": service,
    "base/deployment.yaml": deployment("registry.example/shop/web:1.0.0"),
    ...Object.fromEntries(rings.map((ring) => [`overlays/${ring}/kustomization.yaml`, overlay(ring)])),
    "overlays/broad/kustomization.yaml": `${overlay("broad")}patches:\n  - {path: replicas.yaml, target: {kind: Deployment}}\n`,
    "overlays/broad/replicas.yaml": replicas,
  },
  second: { "base/deployment.yaml": deployment("registry.example/shop/web:1.1.0") },
  /** The image cannot be pulled. */
  broken: { "base/deployment.yaml": deployment("registry.invalid/shop/web:1.2.0") },
  fixed: { "base/deployment.yaml": deployment("registry.example/shop/web:1.2.1") },
} satisfies Record<string, FileChanges>;

export const demoPath = "overlays/{{ cluster.labels.ring }}";
