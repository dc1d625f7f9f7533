import { describe, expect, test } from "vitest";
import { deleteParent, ensureParent, stillHolds } from "#shared/kube/engine/ensure-parent.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { parentName, setIdOf } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { claimFor } from "#test/support/cluster-fixture.ts";
import { engineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const groupKinds = [{ group: "", kind: "ConfigMap" }];

describe.each(clusterTargets)("ensureParent on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const pathOf = (name: string) => `/api/v1/namespaces/starling-system/configmaps/${parentName(claimFor(name))}`;

  test("the parent is not written to a cluster with another uid than before", async () => {
    const claim = claimFor("identity");
    const result = await ensureParent(cluster.client, { claim, groupKinds, expectedClusterUid: "another" });
    expect(result).toMatchObject({ kind: "refused", reason: "IdentityMismatch" });
    expect(await cluster.statusOf("/api/v1/namespaces/starling-system")).toBe(404);
  });

  test("ensureParent makes the namespace and the parent with its owner, and returns the cluster's uid", async () => {
    const claim = claimFor("first");
    const result = await ensureParent(cluster.client, { claim, groupKinds });
    const system = await cluster.raw("GET", "/api/v1/namespaces/kube-system");
    expect(result).toMatchObject({ kind: "written", clusterUid: stringAt(system, "metadata", "uid") });
    const parent = await cluster.raw("GET", pathOf("first"));
    expect(parent).toMatchObject({
      metadata: {
        labels: { "applyset.kubernetes.io/id": setIdOf(claim) },
        annotations: { "applyset.kubernetes.io/tooling": "starling/v0.1", "starling.dev/fence": "1" },
      },
    });
  });

  test("a repeated claim keeps the digests of all attempted renderings", async () => {
    await ensureParent(cluster.client, { claim: claimFor("again", { renderDigest: "sha256:a" }), groupKinds });
    const next = claimFor("again", { renderDigest: "sha256:b", attempt: 2, fence: 2 });
    const result = await ensureParent(cluster.client, { claim: next, groupKinds });
    expect(result).toMatchObject({ kind: "written", record: { attempted: ["sha256:a", "sha256:b"], attempt: 2 } });
  });

  test.each([
    ["a newer worker", { fence: 7 }, "ClusterAhead"],
    ["another installation", { installationId: "installation-2" }, "ForeignOwner"],
    ["another Sync", { syncUid: "other" }, "ForeignOwner"],
  ] as const)(
    "a claim is refused if the parent belongs to %s, and the parent stays unchanged",
    async (name, theirs, reason) => {
      const set = name.replaceAll(" ", "-");
      await ensureParent(cluster.client, { claim: claimFor(set, theirs), groupKinds });
      const before = await cluster.raw("GET", pathOf(set));
      const result = await ensureParent(cluster.client, { claim: claimFor(set), groupKinds });
      expect(result).toMatchObject({ kind: "refused", reason });
      expect(await cluster.raw("GET", pathOf(set))).toEqual(before);
    },
  );

  test("the parent has the newest fence after claims of many workers at once", async () => {
    const fences = [1, 2, 3, 4, 5, 6];
    await Promise.all(
      fences.map((fence) => ensureParent(cluster.client, { claim: claimFor("race", { fence }), groupKinds })),
    );
    expect(await stillHolds(cluster.client, claimFor("race", { fence: 6 }))).toBe(true);
    expect(await stillHolds(cluster.client, claimFor("race", { fence: 5 }))).toBe(false);
  });

  test("deleteParent deletes only a parent with the same fence", async () => {
    await ensureParent(cluster.client, { claim: claimFor("mine"), groupKinds });
    await deleteParent(cluster.client, claimFor("mine", { fence: 0 }));
    expect(await cluster.statusOf(pathOf("mine"))).toBe(200);
    await deleteParent(cluster.client, claimFor("mine"));
    expect(await cluster.statusOf(pathOf("mine"))).toBe(404);
    await deleteParent(cluster.client, claimFor("mine"));
  });
});
