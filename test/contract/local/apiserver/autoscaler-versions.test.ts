import { beforeAll, describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { annotationsOf, listAt, valueAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const target = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const collection = (version: string) => `/apis/autoscaling/${version}/namespaces/scaled/horizontalpodautoscalers`;

function autoscaler(version: string, name: string, spec: JsonObject): JsonObject {
  const full = { scaleTargetRef: target, maxReplicas: 5, ...spec };
  return { apiVersion: `autoscaling/${version}`, kind: "HorizontalPodAutoscaler", metadata: { name }, spec: full };
}

function usage(name: string, share: number): JsonObject {
  return { type: "Resource", resource: { name, target: { type: "Utilization", averageUtilization: share } } };
}

/** Two versions of one kind, each with values that the other version has no fields for. */
describe.each(clusterTargets)("autoscaling/v1 and v2 on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  beforeAll(() =>
    cluster.raw("POST", "/api/v1/namespaces", {
      body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "scaled" } },
    }),
  );

  const read = (version: string, name: string) => cluster.raw("GET", `${collection(version)}/${name}`);

  test("an autoscaler that was created in v1 is read in v2 with the defaults of both", async () => {
    const body = autoscaler("v1", "plain", {});
    const created = await cluster.raw("POST", collection("v1"), { body, expect: 201 });
    const spec = { maxReplicas: 5, minReplicas: 1, scaleTargetRef: target };
    expect(created).toMatchObject({
      apiVersion: "autoscaling/v1",
      spec: { ...spec, targetCPUUtilizationPercentage: 80 },
      status: { currentReplicas: 0, desiredReplicas: 0 },
    });
    const { metrics, ...rest } = (await read("v2", "plain")).spec as JsonObject;
    expect([metrics, rest]).toEqual([[usage("cpu", 80)], spec]);
    expect(await read("v1", "plain")).toEqual(created);
    const items = listAt(await cluster.raw("GET", collection("v1")), "items");
    expect(items.map((item) => valueAt(item, "spec"))).toContainEqual(created.spec);
  });

  test("fields that v1 lacks are annotations in v1, and survive a patch in v1", async () => {
    const pods = { type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue", averageValue: "5" } } };
    const value = { type: "Value", value: "3" };
    const object = { type: "Object", object: { describedObject: target, metric: { name: "o" }, target: value } };
    const metrics = [pods, object, usage("cpu", 50)];
    const behavior = { scaleUp: { stabilizationWindowSeconds: 5 } };
    const body = autoscaler("v2", "rich", { metrics, behavior });
    const created = await cluster.raw("POST", collection("v2"), { body, expect: 201 });
    const old = await read("v1", "rich");
    expect(annotationsOf(old)).toEqual({
      "autoscaling.alpha.kubernetes.io/metrics":
        '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5"}},{"type":"Object","object":{"target":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},"metricName":"o","targetValue":"3"}}]',
      "autoscaling.alpha.kubernetes.io/behavior":
        '{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15},{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}}',
    });
    expect(old.spec).toMatchObject({ targetCPUUtilizationPercentage: 50 });
    await cluster.raw("PATCH", `${collection("v1")}/rich`, { as: "merge-patch", body: { spec: { maxReplicas: 12 } } });
    const { metadata, spec } = await read("v2", "rich");
    expect(spec).toEqual({ ...(created.spec as JsonObject), maxReplicas: 12 });
    expect(metadata).not.toHaveProperty("annotations");
  });

  test("managers that apply in different versions conflict, and each keeps its own version", async () => {
    const apply = (version: string, spec: JsonObject, query: string, expected: number) =>
      cluster.raw("PATCH", `${collection(version)}/shared?${query}`, {
        as: "apply-patch",
        body: autoscaler(version, "shared", spec),
        expect: expected,
      });
    await apply("v1", { targetCPUUtilizationPercentage: 50 }, "fieldManager=old", 201);
    const desired = { maxReplicas: 9, metrics: [usage("memory", 30), usage("cpu", 40)] };
    const refused = await apply("v2", desired, "fieldManager=new", 409);
    expect(refused.message).toBe(
      'Apply failed with 2 conflicts: conflicts with "old":\n- .spec.maxReplicas\n- .spec.targetCPUUtilizationPercentage',
    );
    const forced = await apply("v2", desired, "fieldManager=new&force=true", 200);
    expect(forced.spec).toMatchObject(desired);
    // Managers are ordered by their times in whole seconds, and then by their names.
    const managers = listAt(forced, "metadata", "managedFields");
    expect(managers).toHaveLength(2);
    expect(managers).toContainEqual(expect.objectContaining({ manager: "new", apiVersion: "autoscaling/v2" }));
    const left = { "f:spec": { "f:scaleTargetRef": {} } };
    expect(managers).toContainEqual(
      expect.objectContaining({
        manager: "old",
        apiVersion: "autoscaling/v1",
        fieldsV1: expect.objectContaining(left),
      }),
    );
    // The same manager then applies in the other version.
    const back = await apply("v1", { maxReplicas: 9 }, "fieldManager=new&force=true", 200);
    expect(back.spec).toMatchObject({ maxReplicas: 9 });
    expect(listAt(back, "metadata", "managedFields")).toHaveLength(2);
  });

  test("a body in another version than that of the path is refused", async () => {
    const refused = await cluster.raw("POST", collection("v2"), { body: autoscaler("v1", "other", {}), expect: 400 });
    expect(refused.message).toBe(
      "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)",
    );
  });
});
