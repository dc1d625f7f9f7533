import { describe, expect, test } from "vitest";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** A value that must be shown nowhere. */
const canary = "hunter2-%%";

describe.each(clusterTargets)("values that $name cannot decode", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  /** All tests share a world, because the cluster remembers which table wrote last and refuses others. */
  const world = forAllTests(async () =>
    Object.assign(await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin(), { stop() {} }),
  );

  const secret = (content: object) =>
    manifest({ apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: "unfit" }, ...content });
  const unfitDeployment = () => {
    const { spec, ...rest } = deployment("unfit/d");
    const resources = { limits: { memory: "lots" } };
    const pod = { containers: [{ name: "web", image: "web:1", resources }] };
    return manifest({
      ...rest,
      spec: { ...Object(spec), template: { metadata: { labels: { app: "d" } }, spec: pod } },
    });
  };

  test.each([
    [
      "of a Secret",
      secret({ data: { fine: "YQ==", password: canary } }),
      "Secret unfit/s",
      "data.password is not base64",
    ],
    ["without padding", secret({ data: { password: "YQ" } }), "Secret unfit/s", "data.password is not base64"],
    ["that are no text", secret({ data: { pin: 47_114_711_471_147 } }), "Secret unfit/s", "data.pin is not base64"],
    [
      "of a ConfigMap",
      manifest({ ...configMap("unfit/c"), binaryData: { logo: "???" } }),
      "ConfigMap unfit/c",
      "binaryData.logo is not base64",
    ],
    ["of a Deployment", unfitDeployment(), "Deployment unfit/d", "quantities must match the regular expression"],
  ])(
    "undecodable values %s fail for good, and the object and the field are named",
    async (_what, object, name, message) => {
      await world.assign("unfit", [namespace("unfit"), object]);
      await world.work();
      const row = await world.sync("unfit");
      expect(row?.observed).toMatchObject({ phase: "Failed", problems: [{ object: name }] });
      expect(row?.observed?.problems[0]?.message).toContain(message);
      for (const secretValue of [canary, "47114711471147"]) expect(JSON.stringify(row)).not.toContain(secretValue);
      expect(row?.observed).not.toHaveProperty("nextAt");
    },
  );
});
