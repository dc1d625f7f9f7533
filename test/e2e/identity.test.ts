import type { ClusterConnection } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { untilIdle } from "#test/support/until-idle.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const parent = "/api/v1/namespaces/starling-system/configmaps/shop.web.app";
const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const setId = setIdOf({ syncNamespace: namespace, syncName: "web.app" });

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

  describe("the identity of a cluster", () => {
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

    test("another cluster at the same address is not written to: IdentityMismatch", () =>
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
          await untilIdle(world);
          expect(writesOf(world, "all-2")).toEqual([]);
        },
      ));

    test("a rebuilt cluster gets everything once it is accepted, and no object on it is deleted for its predecessor", () =>
      withWebWorld(
        {
          rings: { all: 2 },
          files: { ...settings("blue"), "deploy/extra.yaml": configMap("extra", { from: "git" }) },
          rollout: { maxUnreachable: 1, maxConcurrent: 2 },
        },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          const cli = openWorldCli(world);
          expect(await cli.run("cluster accept all-2 --yes")).toMatchObject({
            code: 1,
            err: expect.stringContaining("no other cluster has answered at the address of all-2"),
          });
          const old = (await world.cluster("all-2")).status.uid;
          await world.machine.putSecret("starling/clusters/all-2", clusterSecret(await world.fleet.replace("all-2")));
          // Somebody else has created here an object that Starling had made on the old cluster and no longer desires.
          const body = { metadata: { name: "shop" } };
          await world.kubectl("all-2", { method: "POST", path: "/api/v1/namespaces", body });
          const extra = { metadata: { name: "extra", labels: { "applyset.kubernetes.io/part-of": setId } } };
          await world.kubectl("all-2", { method: "POST", path: configs, body: extra });
          world.fleet.clearRequests();
          const second = await world.push("app", { ...settings("green"), "deploy/extra.yaml": null });
          const { message } = await untilPhase(world, "all-2", "Unreachable");
          const [, command = ""] = /: starling (cluster accept all-2 --uid \S+);/.exec(message) ?? [];
          const refused = await cli.run("cluster accept all-2 --uid somebody-else --yes");
          expect(refused).toMatchObject({
            code: 1,
            err: expect.stringContaining("not somebody-else; look at it again"),
          });
          const asked = await cli.run(command);
          expect(asked).toMatchObject({ code: 1, err: expect.stringContaining("1 Sync begins anew there") });
          await untilIdle(world);
          expect(writesOf(world, "all-2")).toEqual([]);

          expect(await cli.run([...command.split(" "), "--yes", "--reason", "rebuilt"])).toMatchObject({
            code: 0,
            out: expect.stringMatching(/^cluster\/all-2 accepted: its Syncs are applied again \(kube-system uid /),
          });
          await world.untilInSync("web", second);
          const { status, operations } = await world.cluster("all-2");
          expect(status.uid).not.toBe(old);
          expect(status).not.toHaveProperty("mismatch");
          expect(operations?.accepted).toMatchObject({ uid: status.uid, reason: "rebuilt" });
          expect((await world.kubectl("all-2", { method: "GET", path: `${configs}/settings` })).object.data).toEqual({
            color: "green",
          });
          expect((await world.kubectl("all-2", { method: "GET", path: `${configs}/extra` })).status).toBe(200);
          expect(writesOf(world, "all-2").filter(({ method }) => method === "DELETE")).toEqual([]);
          expect((await world.kubectl("all-1", { method: "GET", path: `${configs}/extra` })).status).toBe(404);
          cli.close();
        },
      ));

    test("a cluster that another installation manages is left alone: ForeignOwner", () =>
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
            /belongs to the installation the-other-one, but this is the installation starling\.000000000000\.us-east-1; if that owner no longer exists, run `starling recover --all --from the-other-one/,
          ),
        });
        await world.waitFor("the group is halted", async () => (await world.group("web")).status.state === "Halted");
        expect(writesOf(world, "all-1")).toEqual([]);
      }));

    test("a cluster with a newer assignment refuses those of an older table: ClusterAhead", () =>
      withWebWorld({ rings: { all: 1 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        await world.kubectl("all-1", {
          method: "PATCH",
          path: parent,
          body: { metadata: { annotations: { "starling.dev/attempt": "99" } } },
        });
        world.fleet.clearRequests();
        await world.push("app", settings("green"));
        expect(await untilPhase(world, "all-1", "Failed")).toMatchObject({ reason: "ClusterAhead" });
        expect(writesOf(world, "all-1")).toEqual([]);
      }));
  });
});
