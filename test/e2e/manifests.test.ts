import { describe, expect, test } from "vitest";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld } from "#test/support/e2e-world.ts";
import { fleetTargets, proxiedEmbedded } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;

describe.each([...fleetTargets, ...proxiedEmbedded])("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  describe("files in git", () => {
    test("a cluster gets a definition and its object in one folder, names with colons and capitals, and numbers digit for digit", () =>
      withWebWorld(
        {
          rings: { all: 1 },
          files: {
            "deploy/all.yaml": `${namespaceManifest}---
apiVersion: example.com/v1
kind: Gadget
metadata: {name: first}
spec: {mode: 0644, enabled: yes, big: 9007199254740993, text: "0644", float: 1.50, list: [0o17, 1e3]}
---
${definition}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:MyRole"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}}
data: {mode: "0644", on: "yes"}
binaryData: {blob: AAEC}
`,
          },
        },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          const read = async (path: string) => (await world.kubectl("all-1", { method: "GET", path })).object;
          expect((await read("/apis/example.com/v1/gadgets/first")).spec).toEqual({
            mode: 420,
            enabled: true,
            big: 9007199254740993n,
            text: "0644",
            float: 1.5,
            list: [15, 1000],
          });
          const role = await read("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:MyRole");
          expect(role).toMatchObject({ metadata: { name: "system:MyRole" }, rules: [{ verbs: ["get"] }] });
          expect(await read(`${configs}/settings`)).toMatchObject({
            // The key is a boolean in YAML 1.1.
            data: { mode: "0644", true: "yes" },
            binaryData: { blob: "AAEC" },
          });
        },
      ));

    test("clusters get a kustomize base with the overlay of their environment", async () => {
      const world = await startWorld({ target: fleet });
      try {
        await world.join(
          { name: "one", values: { env: "staging" } },
          { name: "two", values: { env: "production" } },
          { name: "three", values: { env: "production" } },
        );
        const overlay = (env: string, size: string) => ({
          [`overlays/${env}/kustomization.yaml`]: `resources: [../../base]
namePrefix: ${env}-
patches:
  - patch: '[{"op": "replace", "path": "/data/size", "value": "${size}"}]'
    target: {kind: ConfigMap}
`,
        });
        const commit = await world.createRepository("app", {
          "base/kustomization.yaml": `resources: [namespace.yaml, settings.yaml]\n`,
          "base/namespace.yaml": namespaceManifest,
          "base/settings.yaml": configMap("settings", { size: "0" }),
          ...overlay("staging", "1"),
          ...overlay("production", "9"),
        });
        await world.apply(
          sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } } }),
          groupDocument("web", {
            clusters: { all: true },
            templates: [{ name: "app", source: "app", path: "overlays/{{ cluster.values.env }}" }],
            rollout: { maxConcurrent: 3 },
          }),
        );
        await world.untilInSync("web", commit);
        const size = async (cluster: string, name: string) =>
          (await world.kubectl(cluster, { method: "GET", path: `${configs}/${name}` })).object.data;
        expect(await size("one", "staging-settings")).toEqual({ size: "1" });
        expect(await size("two", "production-settings")).toEqual({ size: "9" });
        expect(await size("three", "production-settings")).toEqual({ size: "9" });
        const renderings = (await world.rows()).filter(({ type }) => type === "Rendering");
        expect(renderings).toHaveLength(2);
      } finally {
        await world.close();
      }
    });
  });
});
