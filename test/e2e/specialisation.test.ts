// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this file tests them
import { describe, expect, test } from "vitest";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const tier = (name: string) => ({ labels: { tier: name } });

async function read(world: World, cluster: string, name: string) {
  const { object } = await world.kubectl(cluster, { method: "GET", path: `${configs}/${name}` });
  return object as { readonly metadata: { readonly resourceVersion: string }; readonly data?: Record<string, string> };
}

async function versionsOf(world: World, ...clusters: readonly string[]) {
  return Promise.all(
    clusters.map(async (cluster) => (await read(world, cluster, "settings")).metadata.resourceVersion),
  );
}

async function renderingsOf(world: World): Promise<number> {
  return (await world.rows()).filter(({ type }) => type === "Rendering").length;
}

async function setValues(world: World, name: string, values: Readonly<Record<string, string>>): Promise<void> {
  const { spec, metadata } = await world.cluster(name);
  const { labels = {} } = metadata;
  await world.apply({
    apiVersion: ourApiVersion,
    kind: "Cluster",
    metadata: { name, labels },
    spec: { ...spec, values },
  });
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test("one folder differs by cluster through variables, and one changed value causes one rendering and one write", async () => {
    const world = await startWorld({ target: fleet });
    try {
      await world.join(
        { name: "one", ...tier("gold"), values: { domain: "one.example" } },
        { name: "two", ...tier("std"), values: { domain: "many.example", unused: "x" } },
        { name: "four", ...tier("std") },
        { name: "three", ...tier("std"), values: { domain: "many.example", unused: "y" } },
      );
      const commit = await world.createRepository("app", {
        "deploy/namespace.yaml": namespaceManifest,
        "deploy/settings.yaml": configMap("settings", {
          url: "https://${TIER}.${DOMAIN}/${PATH:=}",
          size: "${SIZE}",
          script: "echo $${HOME}",
        }),
        "deploy/script.yaml": configMap("script", { run: "echo ${HOME:?}" }).replace(
          '"metadata": {',
          '"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/substitute": "disabled"},',
        ),
      });
      await world.apply(
        sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } }, interval: "1h" }),
        groupDocument("web", {
          clusters: { all: true },
          templates: [
            {
              name: "app",
              source: "app",
              path: "deploy",
              parameters: { SIZE: "1", DOMAIN: "{{ cluster.values.domain }}", TIER: "{{ cluster.labels.tier }}" },
              substitute: true,
              apply: { interval: "4h" },
              overrides: [
                {
                  clusters: { selector: { matchLabels: { tier: "gold" } } },
                  parameters: { SIZE: "9" },
                  patches: [
                    {
                      target: { kind: "ConfigMap", name: "settings" },
                      patch: '[{"op": "add", "path": "/data/backup", "value": "s3://${DOMAIN}"}]',
                    },
                  ],
                },
                { clusters: { names: ["four"] }, disabled: true },
              ],
            },
          ],
          rollout: { maxConcurrent: 3 },
        }),
      );
      await world.untilInSync("web", commit);
      expect((await read(world, "one", "settings")).data).toEqual({
        url: "https://gold.one.example/",
        size: "9",
        backup: "s3://one.example",
        script: "echo ${HOME}",
      });
      for (const cluster of ["two", "three"])
        expect((await read(world, cluster, "settings")).data).toMatchObject({
          url: "https://std.many.example/",
          size: "1",
        });
      expect((await read(world, "one", "script")).data).toEqual({ run: "echo ${HOME:?}" });
      expect(await renderingsOf(world)).toBe(2);
      expect((await world.kubectl("four", { method: "GET", path: `${configs}/settings` })).status).toBe(404);

      const before = await versionsOf(world, "one", "two", "three");
      await setValues(world, "three", { domain: "many.example", unused: "z" });
      await setValues(world, "two", { domain: 'a"\n${TIER} {{ cluster.name }}' });
      const url = 'https://std.a"\n${TIER} {{ cluster.name }}/';
      await world.waitFor("the new value", async () => (await read(world, "two", "settings")).data?.url === url);
      const after = await versionsOf(world, "one", "two", "three");
      expect([after[0], after[2]]).toEqual([before[0], before[2]]);
      expect(await renderingsOf(world)).toBe(3);
    } finally {
      await world.close();
    }
  });

  test("a folder with an unset variable reaches no cluster, and status and commands name the variable", async () => {
    const world = await startWorld({ target: fleet });
    try {
      await world.join({ name: "one" });
      await world.createRepository("app", { "deploy/a.yaml": configMap("settings", { url: "${DOMAIN}" }) });
      const template = { name: "app", source: "app", path: "deploy", substitute: true };
      const group = (parameters: Readonly<Record<string, string>>) =>
        groupDocument("web", { clusters: { all: true }, templates: [{ ...template, parameters }] });
      const failure = async (said: string) =>
        world.waitFor(said, async () => {
          const [target] = await world.targets("web").catch(() => []);
          return target?.state === "Failed" && target.reason.includes(said) && target.reason;
        });
      await world.apply(sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } } }));
      await world.apply(group({ OTHER: "x" }));
      expect(await failure("DOMAIN")).toBe(
        `RenderFailed: deploy/a.yaml:2, document 1, ConfigMap ${namespace}/settings, data.url: \${DOMAIN} is not set; set parameters.DOMAIN, give it a default as \${DOMAIN:=text}, or write $\${DOMAIN} for that text itself; annotate the object with kustomize.toolkit.fluxcd.io/substitute: disabled to leave it as it is`,
      );
      await world.apply(group({ DOMAIN: "{{ cluster.values.domain }}" }));
      expect(await failure("cluster.values.domain")).toBe(
        "RenderFailed: parameters.DOMAIN: cluster one has no cluster.values.domain; set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery); or add | default(text)",
      );
    } finally {
      await world.close();
    }
  });
});
