import { beforeAll, describe, expect, test, vi } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { listAt, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, definition, widget } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const space = "/api/v1/namespaces/rare";

/** Differences that random requests once found. Each has its own test, which needs no real server. */
describe.each(clusterTargets)("rare requests on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  beforeAll(() => apply(space, { apiVersion: "v1", kind: "Namespace", metadata: { name: "rare" } }));

  function apply(path: string, body: JsonObject, manager = "test"): Promise<JsonObject> {
    return cluster.raw("PATCH", `${path}?fieldManager=${manager}&force=true`, { as: "apply-patch", body });
  }

  function configMap(name: string, metadata: JsonObject = {}): JsonObject {
    return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data: { k: "1" } };
  }

  test("an apply that no longer owns any metadata keeps the metadata without an owner", async () => {
    const path = `${space}/configmaps/waiting`;
    await apply(path, configMap("waiting", { labels: { a: "1" } }));
    const body = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Foreground" };
    await cluster.raw("DELETE", path, { body });
    const { metadata } = await apply(path, configMap("waiting"));
    expect(metadata).toMatchObject({ finalizers: ["foregroundDeletion"], deletionTimestamp: expect.any(String) });
    expect(metadata).not.toHaveProperty("labels");
    expect(await cluster.statusOf(path)).toBe(200);
  });

  test("a second deletion with another propagation policy replaces the first one", async () => {
    const path = `${space}/configmaps/orphaned`;
    await apply(path, configMap("orphaned"));
    for (const propagationPolicy of ["Foreground", "Orphan"]) {
      await cluster.raw("DELETE", path, { body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy } });
    }
    expect(await cluster.raw("GET", path)).toMatchObject({ metadata: { finalizers: ["orphan"] } });
  });

  test.each([
    ["Secret", { data: { a: "YQ==", b: "%%" } }, "error decoding from json: illegal base64 data at input byte 0"],
    ["ConfigMap", { binaryData: { b: "hunter2!!" } }, "error decoding from json: illegal base64 data at input byte 7"],
    [
      "ResourceQuota",
      { spec: { hard: { cpu: "abc" } } },
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
  ] as const)(
    "an apply of a %s with a value that cannot be decoded fails with the reason",
    async (kind, content, why) => {
      const path = `${space}/${kind.toLowerCase()}s/unfit?fieldManager=test&force=true`;
      const body = { apiVersion: "v1", kind, metadata: { name: "unfit", namespace: "rare" }, ...content };
      const { message } = await cluster.raw("PATCH", path, { as: "apply-patch", body, expect: 500 });
      const converted = `failed to convert new object (rare/unfit; /v1, Kind=${kind}) to proper version`;
      expect(message).toBe(`${converted}: unable to convert unstructured object to /v1, Kind=${kind}: ${why}`);
    },
  );

  test("a PUT creates a missing Service, and not a missing ConfigMap", async () => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "put" }, spec: { ports: [{ port: 80 }] } };
    await cluster.raw("PUT", `${space}/services/put`, { body: service, expect: 201 });
    await cluster.raw("PUT", `${space}/configmaps/put`, { body: configMap("put"), expect: 404 });
  });

  test("the message of a conflict names outer fields before inner ones", async () => {
    const path = `${space}/services/shared`;
    const service = (type: string, target: number): JsonObject => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "shared" },
      spec: { type, ports: [{ port: 80, targetPort: target }] },
    });
    await apply(path, service("ClusterIP", 80), "alice");
    const query = "fieldManager=bob";
    const body = service("NodePort", 81);
    const conflict = await cluster.raw("PATCH", `${path}?${query}`, { as: "apply-patch", body, expect: 409 });
    expect(conflict.message).toBe(
      'Apply failed with 2 conflicts: conflicts with "alice":\n- .spec.type\n- .spec.ports[port=80,protocol="TCP"].targetPort',
    );
  });

  test("a Service with an unnamed second port is refused, and so is an ExternalName Service without a name", async () => {
    const refused = async (spec: JsonObject) => {
      const body = { apiVersion: "v1", kind: "Service", metadata: { name: "bad" }, spec };
      return (await cluster.raw("POST", `${space}/services`, { body, expect: 422 })).message;
    };
    expect(await refused({ type: "ExternalName", clusterIP: "None" })).toBe(
      'Service "bad" is invalid: [spec.clusterIPs: Forbidden: may not be set for ExternalName services, spec.externalName: Required value]',
    );
    const name = "web";
    expect(await refused({ ports: [{ name, port: 80 }, { port: 81 }, { name, port: 82 }] })).toBe(
      'Service "bad" is invalid: [spec.ports[1].name: Required value, spec.ports[2].name: Duplicate value: "web"]',
    );
  });

  test("a Secret for basic authentication needs a username or a password", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "basic" }, type: "kubernetes.io/basic-auth" };
    const refused = await cluster.raw("POST", `${space}/secrets`, { body: secret, expect: 422 });
    expect(refused.message).toBe(
      'Secret "basic" is invalid: [data[username]: Required value, data[password]: Required value]',
    );
    await cluster.raw("POST", `${space}/secrets`, { body: { ...secret, data: { username: "YQ==" } }, expect: 201 });
  });

  test("an apply that changes nothing is written only if a later second changes the order of the managers", async () => {
    const path = "/apis/apps/v1/namespaces/rare/deployments/timed";
    const metadata = { name: "timed" };
    const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
    const own = { apiVersion: "apps/v1", kind: "Deployment", metadata };
    const spec = { selector: { matchLabels: { a: "b" } }, template };
    // The server checks for changes only if the object has a status, which it ignores.
    const same = { ...own, spec, status: { replicas: 5 } };
    const created = await apply(path, { ...own, spec }, "first");
    await nextSecond();
    expect(await apply(path, same, "first")).toEqual(created);
    const shared = await apply(path, { ...own, spec: { replicas: 3 } }, "second");
    expect(managersOf(shared)).toEqual(["first", "second"]);
    await nextSecond();
    const moved = await apply(path, same, "first");
    expect(managersOf(moved)).toEqual(["second", "first"]);
    expect(versionOf(moved)).not.toBe(versionOf(shared));
    expect(moved.spec).toEqual(shared.spec);
    await nextSecond();
    expect(await apply(path, same, "first")).toEqual(moved);
  });

  test("a ReplicationController gets its selector and its labels from its template", async () => {
    const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "ko://x/y" }] } };
    const object = { apiVersion: "v1", kind: "ReplicationController", metadata: { name: "old" }, spec: { template } };
    const { metadata, spec } = await apply(`${space}/replicationcontrollers/old`, object);
    expect(metadata).toMatchObject({ labels: { a: "b" } });
    expect(spec).toMatchObject({ replicas: 1, selector: { a: "b" } });
    expect(spec).toMatchObject({ template: { spec: { containers: [{ imagePullPolicy: "IfNotPresent" }] } } });
  });

  test("the claims of a StatefulSet get their kind, and its update strategy gets a partition only if none was given", async () => {
    const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
    const claim = {
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    };
    const set = (name: string, spec: JsonObject): JsonObject => ({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name },
      spec: { serviceName: "s", selector: { matchLabels: { a: "b" } }, template, ...spec },
    });
    const path = "/apis/apps/v1/namespaces/rare/statefulsets";
    const plain = await apply(`${path}/plain`, set("plain", { volumeClaimTemplates: [claim] }));
    const chosen = await apply(`${path}/chosen`, set("chosen", { updateStrategy: { type: "RollingUpdate" } }));
    expect(listAt(plain, "spec", "volumeClaimTemplates")).toMatchObject([
      { apiVersion: "v1", kind: "PersistentVolumeClaim", ...claim },
    ]);
    expect(valueAt(plain, "spec", "updateStrategy")).toEqual({
      type: "RollingUpdate",
      rollingUpdate: { partition: 0 },
    });
    expect(valueAt(chosen, "spec", "updateStrategy")).toEqual({ type: "RollingUpdate" });
  });

  test("a volume has the time of its last change of phase", async () => {
    const body = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "rare" },
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/data" } },
    };
    expect(await apply("/api/v1/persistentvolumes/rare", body)).toMatchObject({
      status: { phase: "Pending", lastPhaseTransitionTime: expect.any(String) },
    });
  });

  test("a definition that is being deleted accepts no new objects, and can still be applied", async () => {
    const group = "leaving.example.com";
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const path = `${definitions}/widgets.${group}`;
    const widgets = `/apis/${group}/v1/namespaces/rare/widgets`;
    const widgetOf = (name: string) => widget(group, `rare/${name}`) as unknown as JsonObject;
    await apply(path, definition(group) as unknown as JsonObject);
    await vi.waitFor(async () => expect(await cluster.statusOf(widgets)).toBe(200), { timeout: 30_000, interval: 100 });
    await apply(`${widgets}/held`, held(widgetOf("held"), "example.com/hold"));
    const ending = await cluster.raw("DELETE", path);
    expect(listAt(ending, "status", "conditions").at(-1)).toMatchObject({
      type: "Terminating",
      status: "True",
      reason: "InstanceDeletionPending",
    });
    const refusal = (name: string) =>
      `widgets.${group} "${name}" is forbidden: create not allowed while custom resource definition is terminating`;
    // A dry run, until the server refuses: an object that is created after the others are deleted would delay it a minute.
    await vi.waitFor(() => cluster.raw("POST", `${widgets}?dryRun=All`, { body: widgetOf("dry"), expect: 403 }), {
      timeout: 30_000,
      interval: 100,
    });
    const posted = await cluster.raw("POST", widgets, { body: widgetOf("posted"), expect: 403 });
    expect(posted.message).toBe(refusal("posted"));
    const query = "fieldManager=test";
    const body = widgetOf("applied");
    const applied = await cluster.raw("PATCH", `${widgets}/applied?${query}`, { as: "apply-patch", body, expect: 403 });
    expect(applied.message).toBe(refusal("applied"));
    await vi.waitFor(
      async () =>
        expect(listAt(await cluster.raw("GET", path), "status", "conditions").at(-1)).toMatchObject({
          reason: "InstanceDeletionInProgress",
          message: "CustomResource deletion is in progress",
        }),
      { timeout: 30_000, interval: 100 },
    );
    await apply(path, definition(group) as unknown as JsonObject);
    await apply(`${widgets}/held`, widgetOf("held"));
    await vi.waitFor(async () => expect(await cluster.statusOf(path)).toBe(404), { timeout: 30_000, interval: 100 });
  }, 120_000);

  test("the finalizers of custom resources need no domain, and those of other objects do", async () => {
    const refused = await cluster.raw("POST", `${space}/configmaps`, {
      body: configMap("final", { finalizers: ["foo"] }),
      expect: 422,
    });
    expect(refused.message).toContain("name is neither a standard finalizer name nor is it fully qualified");
    const crd = definition("final.example.com") as unknown as JsonObject;
    await apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.final.example.com", crd);
    const widgets = "/apis/final.example.com/v1/namespaces/rare/widgets";
    await vi.waitFor(async () => expect(await cluster.statusOf(widgets)).toBe(200), { timeout: 30_000, interval: 100 });
    const object = held(widget("final.example.com", "rare/free") as unknown as JsonObject, "foo");
    expect(await cluster.raw("POST", widgets, { body: object, expect: 201 })).toMatchObject({
      metadata: { finalizers: ["foo"] },
    });
  }, 60_000);
});

function held(object: JsonObject, finalizer: string): JsonObject {
  return { ...object, metadata: { ...(object.metadata as JsonObject), finalizers: [finalizer] } };
}

function managersOf(object: JsonObject): readonly string[] {
  const entries = valueAt(object, "metadata", "managedFields");
  return Array.isArray(entries) ? entries.map((entry) => stringAt(entry, "manager") ?? "") : [];
}

function versionOf(object: JsonObject): string | undefined {
  return stringAt(object, "metadata", "resourceVersion");
}

/** Waits for the next second, because the times of managers are whole seconds. */
async function nextSecond(): Promise<void> {
  const second = () => Math.floor(Date.now() / 1000);
  const now = second();
  await vi.waitFor(() => expect(second()).toBeGreaterThan(now), { timeout: 5000, interval: 20 });
}
