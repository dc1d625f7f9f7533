import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { ClusterConnection } from "#local/cluster/cluster-host.ts";
import { clusterSecret } from "#shared/domain/cluster-secret.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { webWorldOn } from "#test/support/web-world.ts";

const parent = "/api/v1/namespaces/starling-system/configmaps/shop.web.app";
const silenceMs = 1000;

function settings(color: string): Record<string, string> {
  return { "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) };
}

function writesOf(world: World, cluster: string) {
  return world.fleet
    .requests()
    .filter(
      (request) => request.cluster === cluster && request.method !== "GET" && request.userAgent !== handUserAgent,
    );
}

async function untilPhase(world: World, cluster: string, phase: string) {
  return world.waitFor(`${cluster} is ${phase}`, async () => {
    const sync = await world.sync(cluster, "web.app");
    return sync?.status.observed?.phase === phase && sync.status.observed;
  });
}

describe.each(fleetTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  describe("a cluster", () => {
    test.each<[what: string, secret: (own: ClusterConnection, other: ClusterConnection) => string, reason: string]>([
      ["a wrong token", (own) => clusterSecret({ ...own, token: "not-the-token" }), "Unauthorized"],
      ["no token", (own) => clusterSecret({ ...own, token: "" }), "InvalidCredentials"],
      ["a token for nobody", (own) => own.token, "SecretUnbound"],
      ["the token of another cluster", (_own, other) => clusterSecret(other), "SecretMismatch"],
    ])("with %s in its secret is unreachable, and joins in when it has its own", (_what, secret, reason) =>
      withWebWorld(
        { rings: { all: 2 }, files: settings("blue"), rollout: { maxUnreachable: 1, maxConcurrent: 2 } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          await world.join({ name: "late" });
          const own = world.fleet.connection("late");
          await world.machine.putSecret("starling/clusters/late", secret(own, world.fleet.connection("all-1")));
          const { spec } = await world.cluster("late");
          const metadata = { name: "late", labels: { ring: "all" } };
          await world.apply({ apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata, spec });
          expect(await untilPhase(world, "late", "Unreachable")).toMatchObject({ reason });
          await world.waitFor("the Cluster says so", async () => {
            const [condition] = (await world.cluster("late")).status.conditions;
            return condition?.status === "False" && condition.reason === reason;
          });
          expect(writesOf(world, "late").filter(({ status }) => status < 300)).toEqual([]);

          await world.machine.putSecret("starling/clusters/late", clusterSecret(own));
          await untilPhase(world, "late", "Ready");
        },
      ),
    );

    test("that another one took the place of gets nothing: IdentityMismatch", () =>
      withWebWorld(
        { rings: { all: 2 }, files: settings("blue"), rollout: { maxUnreachable: 1, maxConcurrent: 2 } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          await world.machine.putSecret("starling/clusters/all-2", clusterSecret(await world.fleet.replace("all-2")));
          world.fleet.clearRequests();
          await world.push("app", settings("green"));
          expect(await untilPhase(world, "all-2", "Unreachable")).toMatchObject({ reason: "IdentityMismatch" });
          await world.waitFor("the rollout goes on without it", async () => {
            const { state, clusters } = (await world.group("web")).status;
            return state === "Degraded" && clusters?.ready === 1 && clusters.unreachable === 1;
          });
          await sleep(silenceMs);
          expect(writesOf(world, "all-2")).toEqual([]);
        },
      ));

    test("that another installation manages is left to it: ForeignOwner", () =>
      withWebWorld({ rings: { all: 1 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        await world.kubectl("all-1", {
          method: "PATCH",
          path: parent,
          body: { metadata: { annotations: { "starling.dev/installation": "the-other-one" } } },
        });
        world.fleet.clearRequests();
        await world.push("app", settings("green"));
        expect(await untilPhase(world, "all-1", "Failed")).toMatchObject({
          reason: "ForeignOwner",
          message: expect.stringMatching(
            /belongs to the installation the-other-one, this is starling\.000000000000\.us-east-1; delete ConfigMap/,
          ),
        });
        await world.waitFor("the group is halted", async () => (await world.group("web")).status.state === "Halted");
        expect(writesOf(world, "all-1")).toEqual([]);
      }));

    test("that was given something newer stops a table from the past: ClusterAhead", () =>
      withWebWorld({ rings: { all: 1 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        await world.kubectl("all-1", {
          method: "PATCH",
          path: parent,
          body: { metadata: { annotations: { "starling.dev/generation": "99" } } },
        });
        world.fleet.clearRequests();
        await world.push("app", settings("green"));
        expect(await untilPhase(world, "all-1", "Failed")).toMatchObject({ reason: "ClusterAhead" });
        expect(writesOf(world, "all-1")).toEqual([]);
      }));
  });
});
