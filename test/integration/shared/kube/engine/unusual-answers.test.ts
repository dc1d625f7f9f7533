/** Answers that a working API server may give once, and a broken one gives again and again. */
import { describe, expect, test } from "vitest";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clientWith } from "#test/support/client-with.ts";
import { claimFor, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { applyRequest, engineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const groupKinds = [{ group: "", kind: "ConfigMap" }];
const conflict = () =>
  new KubeError(
    { method: "PUT", path: "/api/v1/namespaces/starling-system/configmaps/x", secret: false },
    { status: 409, reason: "Conflict", message: "the object has been modified", causes: [] },
  );

describe.each(clusterTargets)("the engine on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  test("an object whose uid the answer lacks is not recorded, and fails with the reason", async () => {
    const client = clientWith(cluster.client, {
      async apply(kind, object, options) {
        const answer = await cluster.client.apply(kind, object, options);
        if (object.metadata.name !== "nameless") return answer;
        const { uid: _uid, ...metadata } = Object(answer.object.metadata);
        return { ...answer, object: { ...answer.object, metadata } };
      },
    });
    const objects = [namespace("nameless-uid"), configMap("nameless-uid/nameless"), configMap("nameless-uid/c")];
    const result = await applySet(client, applyRequest("nameless-uid", objects));
    const byName = new Map(result.objects.map((object) => [object.id.name, object]));
    expect(byName.get("c")).toMatchObject({ outcome: "created" });
    expect(byName.get("nameless")).toMatchObject({
      outcome: "failed",
      failure: { class: "malformed", reason: "AnswerMalformed", retryable: true },
    });
    expect(byName.get("nameless")).not.toHaveProperty("entry");
  });

  test.each([
    [5, "written"],
    [6, "Conflict"],
  ] as const)(
    "if others write the parent %i times in a row, the claim of a worker ends with %s",
    async (times, outcome) => {
      const set = `raced-${times}`;
      await ensureParent(cluster.client, { claim: claimFor(set), groupKinds });
      let left = times;
      const client = clientWith(cluster.client, {
        async replace(kind, object) {
          if (left-- > 0) throw conflict();
          return cluster.client.replace(kind, object);
        },
      });
      const next = { claim: claimFor(set, { attempt: 2, fence: 2 }), groupKinds };
      const answer = await ensureParent(client, next).catch((error: unknown) => error);
      expect(answer).toMatchObject(outcome === "written" ? { kind: "written" } : { reason: "Conflict" });
    },
  );
});
