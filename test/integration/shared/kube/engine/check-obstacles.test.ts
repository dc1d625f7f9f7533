/** Results of a check for objects that it may not read, that were replaced, or that remove themselves. */
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import type { ApplyErrorFacts } from "#shared/kube/apply-error.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { checkHealth, type HealthRequest } from "#shared/kube/engine/check-health.ts";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { definitionGenerations } from "#shared/kube/engine/existing-objects.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { configMap, definition, deployment, inSeconds, manifest, widget } from "#test/support/cluster-fixture.ts";
import { applyRequest, faultyEngineWorld, recorded } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, watchedClient } from "#test/support/watched-client.ts";

const cluster = forAllTests(faultyEngineWorld);
afterEach(async () => {
  await cluster.setFaults({});
  cluster.client.forgetKinds();
});

const core = "/api/v1/namespaces/default/configmaps";
const refused = (facts: Partial<ApplyErrorFacts>) =>
  new KubeError({ method: "GET", path: "/", secret: false }, { message: "as told", causes: [], ...facts });
const forbidden = () => refused({ status: 403, reason: "Forbidden" });

/** A client that is refused some calls. */
const refusing = (isRefused: (call: ClientCall) => boolean, why: () => KubeError = forbidden) =>
  watchedClient(cluster.client, async (call) => {
    if (isRefused(call)) throw why();
  });
const reads = (name: string) => (call: ClientCall) =>
  (call.method === "list" || call.method === "get") && call.name === name;

const job = (name: string, more: object = { ttlSecondsAfterFinished: 0 }) =>
  manifest({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace: "default" },
    spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "a" }] } }, ...more },
  });
const jobPath = (name: string) => `/apis/batch/v1/namespaces/default/jobs/${name}`;

/** Makes a group that is not served for the moment. */
async function silenced(group: string, set: string) {
  const inventory = await cluster.applied(set, [
    definition(group),
    widget(group, "default/w"),
    configMap(`default/${set}`),
  ]);
  await cluster.setFaults({ unavailableApis: [`v1.${group}`] });
  cluster.client.forgetKinds();
  return inventory;
}

describe("health", () => {
  const check = (inventory: HealthRequest["inventory"], more: Partial<HealthRequest> = {}, client = cluster.client) =>
    checkHealth(client, { inventory, clock: systemClock, ...more });

  test("health of a kind that is not served for the moment is unknown, and of others known", async () => {
    const report = await check(await silenced("quiet.example.com", "quiet"));
    expect(report).toMatchObject({ total: 3, ready: 2, failed: 0, worst: "Unknown" });
    expect(report.notReady).toMatchObject([
      { id: { name: "w" }, reason: "KindUnavailable", message: expect.stringContaining("quiet.example.com") },
    ]);
  });

  test("health of a kind that may not be read is unknown, with the reason", async () => {
    const inventory = await cluster.applied("hidden", [configMap("default/hidden"), job("hidden")]);
    const report = await check(inventory, {}, refusing(reads("hidden")));
    expect(report.notReady).toMatchObject([
      { status: "Unknown", reason: "Forbidden", message: expect.stringContaining("as told") },
      { status: "Unknown", reason: "Forbidden" },
    ]);
  });

  test.each([
    ["does not answer", () => refused({ code: "ECONNREFUSED" }), "unreachable"],
    ["lets nobody in", () => refused({ status: 401 }), "auth"],
    ["answers with more than is taken", () => refused({ code: "AnswerTooLarge" }), "tooLarge"],
  ])("a cluster that %s has no health", async (_what, why, expected) => {
    const inventory = await cluster.applied("away", [configMap("default/away")]);
    await expect(check(inventory, {}, refusing(reads("away"), why))).rejects.toMatchObject({ class: expected });
  });

  test("the health of another object with its name is not its own", async () => {
    const inventory = await cluster.applied("heir", [configMap("default/heir")]);
    await cluster.raw("DELETE", `${core}/heir`);
    await cluster.raw("POST", core, { body: configMap("default/heir") });
    expect((await check(inventory)).notReady).toMatchObject([
      {
        status: "NotFound",
        reason: "Replaced",
        message: expect.stringMatching(/^another object has its name: uid .+, applied .+/),
      },
    ]);
  });

  test.each<[string, object, boolean, "left" | "gone" | "going", string | undefined]>([
    ["that failed and removed itself has failed", {}, true, "gone", "JobFailed"],
    ["that failed and is removing itself has failed", {}, true, "going", "JobFailed"],
    ["that failed and is made again says how it is now", {}, true, "left", "JobNotStarted"],
    ["that had not failed and is gone has finished", {}, false, "gone", undefined],
    ["that does not remove itself is missed", { ttlSecondsAfterFinished: undefined }, true, "gone", "NotFound"],
  ])("the health of a Job %s", async (what, spec, hadFailed, left, reason) => {
    const name = what.replaceAll(" ", "-").slice(0, 40);
    const one = job(name, { ttlSecondsAfterFinished: 0, ...spec });
    const inventory = await cluster.applied(name, [JSON.parse(JSON.stringify(one)) as ManifestObject]);
    if (left === "going") {
      const body = { metadata: { finalizers: ["example.com/hold"] } };
      await cluster.raw("PATCH", jobPath(name), { as: "merge-patch", body });
    }
    if (left !== "left") await cluster.raw("DELETE", `${jobPath(name)}?propagationPolicy=Background`);
    const failedJobs = new Set(hadFailed ? [`Job default/${name}`] : []);
    const report = await check(inventory, { failedJobs });
    if (reason === undefined) expect(report).toMatchObject({ ready: 1, worst: "Current" });
    else if (left !== "left") expect(report.notReady).toMatchObject([{ id: { name }, reason }]);
    else expect(report.notReady.map((object) => object.reason)).not.toContain("JobFailed");
    if (reason === "JobFailed") expect(report).toMatchObject({ failed: 1, worst: "Failed" });
  });

  test("health of a Job that failed before is unknown if Jobs may not be read", async () => {
    const inventory = await cluster.applied("unread-job", [job("unread-job")]);
    const failedJobs = new Set(["Job default/unread-job"]);
    const report = await check(inventory, { failedJobs }, refusing(reads("unread-job")));
    expect(report.notReady).toMatchObject([{ status: "Unknown", reason: "Forbidden" }]);
  });

  test.each([
    ["which may not be read", {}, forbidden],
    ["which are chosen by an expression", { matchExpressions: [{ key: "app", operator: "Exists" }] }, undefined],
  ])("the health of a workload includes none of its Pods %s", async (what, more, why) => {
    const name = what.replaceAll(" ", "-");
    const web = deployment(`default/${name}`) as ManifestObject & { readonly spec: { readonly selector: object } };
    const chosen = manifest({ ...web, spec: { ...web.spec, selector: { ...web.spec.selector, ...more } } } as never);
    const inventory = await cluster.applied(name, [chosen]);
    let asked = 0;
    const client = watchedClient(cluster.client, async (call) => {
      if (!reads("pods")(call)) return;
      asked += 1;
      if (why !== undefined) throw why();
    });
    const [unready] = (await check(inventory, {}, client)).notReady;
    expect(unready).toMatchObject({ status: "InProgress", message: "Replicas: 0/2" });
    expect(asked).toBe(why === undefined ? 0 : 1);
  });
});

describe("drift", () => {
  test("drift of a kind that is not served for the moment is unknown, and none of its objects is missing", async () => {
    const inventory = await silenced("dumb.example.com", "dumb");
    const report = await detectDrift(cluster.client, inventory);
    expect(report).toMatchObject({ clean: false, drifted: [], definitions: inventory.definitions });
    expect(report.unread).toMatchObject([
      {
        ...{ group: "dumb.example.com", kind: "Widget" },
        failure: { class: "noMatch", reason: "KindUnavailable", retryable: true, outcomeUnknown: false },
      },
    ]);
    expect(report.unread[0]?.failure.message).toContain("dumb.example.com");
  });

  test("drift of a kind that may not be listed is unknown; that of others is known", async () => {
    const inventory = await cluster.applied("unlisted", [configMap("default/unlisted"), job("unlisted")]);
    await cluster.raw("DELETE", `${core}/unlisted`);
    const report = await detectDrift(refusing(reads("jobs")), inventory);
    expect(report).toMatchObject({ clean: false, drifted: [{ id: { name: "unlisted" }, how: "missing" }] });
    expect(report.unread).toMatchObject([{ group: "batch", kind: "Job", failure: { reason: "Forbidden" } }]);
  });

  test.each<[string, () => KubeError, readonly string[], object]>([
    ["is checked in each namespace if all may not be listed", forbidden, ["a missing", "b missing"], { unread: [] }],
    [
      "is unknown if all cannot be listed for the moment",
      () => refused({ status: 503 }),
      [],
      { clean: false, unread: [{ kind: "ConfigMap", failure: { class: "transient" } }] },
    ],
  ])("drift of objects in several namespaces %s", async (_what, why, missing, rest) => {
    const inventory = await cluster.applied("spread", [configMap("default/a"), configMap("kube-public/b")]);
    await cluster.raw("DELETE", `${core}/a`);
    await cluster.raw("DELETE", `${core.replace("default", "kube-public")}/b`);
    let lists = 0;
    const client = refusing((call) => reads("configmaps")(call) && ++lists === 1, why);
    const report = await detectDrift(client, inventory);
    expect(report.drifted.map(({ id, how }) => `${id.name} ${how}`).toSorted()).toEqual(missing);
    expect(report).toMatchObject(rest);
  });

  test("a cluster that does not answer has no drift", async () => {
    const inventory = await cluster.applied("off", [configMap("default/off")]);
    const client = refusing(reads("configmaps"), () => refused({ code: "ECONNREFUSED" }));
    await expect(detectDrift(client, inventory)).rejects.toMatchObject({ class: "unreachable" });
  });

  test("drift names an object that was replaced by another one with the mark, and its last writer", async () => {
    const inventory = await cluster.applied("swapped", [configMap("default/swapped")]);
    await cluster.raw("DELETE", `${core}/swapped`);
    const labels = { [partOfLabel]: inventory.setId };
    const body = { ...configMap("default/swapped"), metadata: { name: "swapped", labels } };
    await cluster.raw("POST", `${core}?fieldManager=a-stranger`, { body: body as never });
    const { drifted, clean } = await detectDrift(cluster.client, inventory);
    expect(drifted).toMatchObject([{ how: "replaced", lastWriter: expect.stringMatching(/^a-stranger at 2\d{3}-/) }]);
    expect(clean).toBe(false);
  });

  const first = ["first", "2026-01-01T00:00:00Z"];
  const last = ["last", "2026-03-01T00:00:00Z"];
  const second = ["second", "2026-02-01T00:00:00Z"];
  test.each([
    ["the newest of several", [first, last, second], "last at 2026-03-01T00:00:00Z"],
    ["what is known of one that says little", [[]], "an unknown manager at an unknown time"],
    ["one that says when before one that does not", [["x"], first], "first at 2026-01-01T00:00:00Z"],
  ])("drift names %s", async (_what, times, lastWriter) => {
    const inventory = await cluster.applied("written", [configMap("default/written")]);
    const live = await cluster.client.get(
      { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true } as never,
      { namespace: "default", name: "written" },
    );
    const entryOf = ([manager, time]: readonly string[]) => ({
      ...{ manager, time, operation: "Update", apiVersion: "v1" },
      ...{ fieldsType: "FieldsV1", fieldsV1: { "f:data": { "f:k": {} } } },
    });
    const changed = { ...live, data: { k: "x" } } as Record<string, unknown>;
    const metadata = { ...(changed.metadata as object), managedFields: times.map(entryOf) };
    const client = new Proxy(cluster.client, {
      get(inner, name) {
        const member = Reflect.get(inner, name) as (...args: unknown[]) => unknown;
        if (name === "list") {
          return async () => [{ ...changed, metadata: { ...metadata, resourceVersion: "1" } }];
        }
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });
    const report = await detectDrift(client, inventory);
    expect(report.drifted).toMatchObject([{ how: "changed", lastWriter }]);
  });

  test("drift is searched for where foreign objects are known, also in kinds without recorded objects", async () => {
    const inventory = await cluster.applied("also", [configMap("default/also")]);
    const labels = { [partOfLabel]: inventory.setId };
    const secrets = "/api/v1/namespaces/default/secrets";
    const elsewhere = core.replace("default", "kube-public");
    for (const [path, kind] of [[secrets, "Secret"] as const, [elsewhere, "ConfigMap"] as const]) {
      await cluster.raw("POST", path, { body: { apiVersion: "v1", kind, metadata: { name: "stray", labels } } });
    }
    expect((await detectDrift(cluster.client, inventory)).foreign).toEqual([]);
    const secret = { group: "", kind: "Secret", namespace: "default", name: "stray" };
    const config = { group: "", kind: "ConfigMap", namespace: "kube-public", name: "stray" };
    const calls: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method === "list") calls.push(name);
    });
    const report = await detectDrift(client, inventory, { also: [secret, secret, config] });
    expect(report).toMatchObject({ clean: true, drifted: [] });
    expect(report.foreign.map(({ id }) => id)).toEqual(expect.arrayContaining([secret, config]));
    expect(calls.toSorted()).toEqual(["configmaps", "secrets"]);
  });
});

describe("the generation of a definition", () => {
  const group = "made.example.com";
  const kinds = [{ group, kind: "Widget" }];
  const name = `widgets.${group}`;

  test("a generation that may not be read is unknown; one that cannot be read for the moment is an error", async () => {
    await cluster.applied("made", [definition(group)]);
    expect(await definitionGenerations(cluster.client, kinds)).toEqual({ [name]: 1 });
    expect(await definitionGenerations(refusing(reads(name)), kinds)).toEqual({});
    const down = refusing(reads(name), () => refused({ status: 503 }));
    await expect(definitionGenerations(down, kinds)).rejects.toMatchObject({ class: "transient" });
  });

  test("a generation is left to the next run if the time was over, and is an error if it was not", async () => {
    await cluster.applied("made", [definition(group)]);
    const objects = [widget(group, "default/made")];
    const deadline = inSeconds(60);
    let now = new Date();
    const silence = () => refused({ code: "ETIMEDOUT" });
    const cut = watchedClient(cluster.client, async (call) => {
      if (!reads(name)(call)) return;
      now = deadline;
      throw silence();
    });
    const clock = { now: () => now, sleep: async () => {} };
    const result = await applySet(cut, applyRequest("made-late", objects, { deadline, clock }));
    expect(result).toMatchObject({ outcome: "waiting", timeWasUp: true, objects: [{ outcome: "skipped" }] });
    expect(recorded({ ...applyRequest("made-late", []).inventory }, result).definitions).toEqual({});
    const broken = refusing(reads(name), silence);
    await expect(applySet(broken, applyRequest("made-late", objects))).rejects.toMatchObject({ class: "transient" });
  });

  test("a generation that grows while its objects are applied is recorded as it was before", async () => {
    const own = "grows.example.com";
    const made = definition(own);
    await cluster.applied("grows", [made]);
    const names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", shortNames: ["w"] };
    const next = manifest({ ...made, spec: { ...(made as { spec?: object }).spec, names } } as never);
    const grown = watchedClient(cluster.client, async ({ method }) => {
      if (method === "apply") await cluster.applied("grows", [next]);
    });
    const result = await applySet(grown, applyRequest("grown", [widget(own, "default/grown")]));
    expect(result).toMatchObject({ outcome: "applied", definitions: { [`widgets.${own}`]: 1 } });
    expect(await definitionGenerations(cluster.client, [{ group: own, kind: "Widget" }])).toEqual({
      [`widgets.${own}`]: 2,
    });
  });
});
