/** A cluster by IAM that is reached by `spec.eks.endpointOverride` only: nobody listens at the address that EKS names. */
import type { Authenticator } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import type { LocalEks } from "#local/machine/machine.ts";
import { startCountingServer } from "#test/support/counting-server.ts";
import { groupDocument, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld } from "#test/support/e2e-world.ts";
import { embeddedFleetFor } from "#test/support/fleet.ts";

const arn = "arn:aws:eks:eu-west-1:444455556666:cluster/far";
const role = "arn:aws:iam::444455556666:role/starling/clusters/far";
const apiVersion = "starling.dev/v1alpha1";
const manifest = (kind: string, rest: object) => JSON.stringify({ apiVersion: "v1", kind, ...rest });
const configMap = (color: string) => manifest("ConfigMap", { metadata: { name: "web", namespace }, data: { color } });

interface ConfigMap {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly data: { readonly color: string };
}

test("a cluster comes into sync at another address, is the same one at the next, and no other server gets its token", {
  timeout: 240_000,
}, async () => {
  let eks: LocalEks | undefined;
  const asEks: Authenticator = (token, cluster) =>
    eks === undefined
      ? Promise.resolve(undefined)
      : eksAuthenticator({ ...eks, stsEndpoint: eks.endpoint, arnOf: () => arn })(token, cluster);
  const lines: string[] = [];
  const world = await startWorld({
    faults: quiet,
    target: embeddedFleetFor(asEks),
    onLine: (_function, line) => lines.push(JSON.stringify(line)),
  });
  const stranger = await startCountingServer({}, await createTlsCertificate());
  try {
    const { machine, fleet } = world;
    eks = machine.eks;
    const { server, caData } = await fleet.add("far");
    const { origin, port } = new URL(server);
    eks.roles.put({ arn: role, trusts: [{ principalArn: eks.callerArn, externalId: `${eks.installation}/far` }] });
    eks.clusters.put({
      ...{ arn, name: "far", accountId: "444455556666", region: "eu-west-1", status: "ACTIVE", version: "1.36" },
      ...{
        endpoint: "https://localhost:9/clusters/far",
        caData,
        tags: {},
        createdAt: new Date("2026-01-01T00:00:00Z"),
      },
      accessEntries: [
        { principalArn: role, kubernetesGroups: [], username: "starling", policies: [clusterAdminPolicy] },
      ],
    });
    const reachedAt = (address: string | undefined) => {
      const endpointOverride = address === undefined ? {} : { endpointOverride: { server: address } };
      return world.apply({
        ...{ apiVersion, kind: "Cluster", metadata: { name: "far" } },
        spec: { eks: { arn, ...endpointOverride }, access: { role: { name: "starling/clusters/far" } } },
      });
    };
    const reachable = async () => {
      const { status } = await world.cluster("far");
      return status.conditions.find(({ type }) => type === "Reachable");
    };
    const pushed = async (color: string) => {
      await world.untilInSync("web", await world.push("shop", { "deploy/web.json": configMap(color) }));
      const objects = (await fleet.objects("far")) as readonly Partial<ConfigMap>[];
      const found = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata?.name === "web");
      return [found?.data?.color, found?.metadata?.uid];
    };

    await world.createRepository("shop", {
      "deploy/ns.json": manifest("Namespace", { metadata: { name: namespace } }),
      "deploy/web.json": configMap("red"),
    });
    await world.apply(
      sourceDocument("shop", { git: { url: world.git.url("shop"), ref: { branch: "main" } } }),
      groupDocument("web", {
        clusters: { all: true },
        templates: [{ name: "web", source: "shop", path: "deploy" }],
      }),
    );
    await reachedAt(undefined);
    await world.waitFor("the cluster to be unreachable at the address of EKS", async () => {
      const condition = await reachable();
      return condition?.status === "False" && condition.message.includes("ECONNREFUSED");
    });

    await reachedAt(origin);
    const [color, uid] = await pushed("blue");
    const { status } = await world.cluster("far");
    expect([color, uid, status.uid]).toEqual(["blue", expect.any(String), fleet.connection("far").uid]);

    await reachedAt(`https://localhost:${port}`);
    expect(await pushed("green")).toEqual(["green", uid]);

    await reachedAt(`https://127.0.0.1:${stranger.port}`);
    await world.waitFor("the cluster to be unreachable at another server", async () => {
      return (await reachable())?.status === "False";
    });
    expect([stranger.connections() > 0, stranger.received()]).toEqual([true, ""]);

    await reachedAt(origin);
    expect(await pushed("white")).toEqual(["white", uid]);
    const now = await world.cluster("far");
    expect([now.status.uid, now.status.mismatch]).toEqual([status.uid, undefined]);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes("k8s-aws-v1."))).toEqual([]);
  } finally {
    await stranger.stop();
    await world.close();
  }
});
