/** An object is replaced, or gets another owner, between the read and the write of an apply. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import type { ApplyErrorFacts } from "#shared/kube/apply-error.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { deleteParent, ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { parentName } from "#shared/kube/parent-object.ts";
import { clientWith } from "#test/support/client-with.ts";
import { claimFor, configMap, inSeconds, manifest } from "#test/support/cluster-fixture.ts";
import { applyRequest, faultyEngineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, watchedClient } from "#test/support/watched-client.ts";

const cluster = forAllTests(faultyEngineWorld);
const all = "/api/v1/namespaces/default/configmaps";
const ofHelm = {
  labels: { "app.kubernetes.io/managed-by": "Helm" },
  annotations: { "meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "default" },
};
const refused = (facts: Partial<ApplyErrorFacts>) =>
  new KubeError({ method: "PATCH", path: "/", secret: false }, { status: 500, message: "", causes: [], ...facts });

/** A client before whose n-th call of a method something happens, and what was called. */
function meanwhile(method: ClientCall["method"], happen: (nth: number) => Promise<unknown>) {
  const calls: string[] = [];
  const client = watchedClient(cluster.client, async (call) => {
    calls.push(call.method);
    if (call.method === method) await happen(calls.filter((one) => one === method).length);
  });
  return { client, calls };
}

/** Changes that other writers make to an object of this name. */
const patched = (name: string, body: object) =>
  cluster.raw("PATCH", `${all}/${name}?fieldManager=them`, { as: "merge-patch", body: body as JsonObject });

async function remade(name: string, metadata: object = {}): Promise<void> {
  await cluster.raw("DELETE", `${all}/${name}`);
  await made(name, metadata);
}

async function made(name: string, metadata: object = {}): Promise<void> {
  const body = { ...configMap(`default/${name}`, { k: "theirs" }), metadata: { name, ...metadata } };
  await cluster.raw("POST", all, { body: body as JsonObject });
}

const dataOf = async (name: string) => (await cluster.raw("GET", `${all}/${name}`)).data;
const foreign = { outcome: "failed", failure: { class: "foreign", reason: "ForeignOwner" } };

describe("an object that was applied", () => {
  test.each<[string, (name: string) => Promise<unknown>, object, unknown]>([
    ["has gone to another tool", (name) => patched(name, { metadata: ofHelm }), foreign, "1"],
    ["was made anew by another tool", (name) => remade(name, ofHelm), foreign, "theirs"],
    ["was written to by others", (name) => patched(name, { data: { more: "x" } }), { outcome: "configured" }, "2"],
    ["was made anew by hand", (name) => remade(name), { outcome: "configured", adopted: true }, "2"],
  ])("an object that %s since its last apply is read before it is written", async (what, change, expected, value) => {
    const name = what.replaceAll(" ", "-");
    const inventory = await cluster.applied(name, [configMap(`default/${name}`, { k: "1" })]);
    await change(name);
    const result = await cluster.apply(name, [configMap(`default/${name}`, { k: "2" })], { inventory });
    expect(result.objects).toMatchObject([expected]);
    expect(await dataOf(name)).toMatchObject({ k: value });
  });

  test("an object counts as unchanged if the apply gives it the recorded values, or the values that it has", async () => {
    const objects = [configMap("default/back", { k: "1" })];
    const inventory = await cluster.applied("back", objects);
    await patched("back", { data: { k: "theirs" } });
    expect((await cluster.apply("back", objects, { inventory })).objects).toMatchObject([{ outcome: "unchanged" }]);
    expect(await dataOf("back")).toEqual({ k: "1" });
    // Another worker creates the object again, without recording it.
    await cluster.raw("DELETE", `${all}/back`);
    await cluster.applied("back", objects);
    expect((await cluster.apply("back", objects, { inventory })).objects).toMatchObject([{ outcome: "unchanged" }]);
  });
});

describe("an object that was found just before", () => {
  test.each<[string, (name: string) => Promise<unknown>, object, unknown]>([
    ["then created again by another tool", (name) => remade(name, ofHelm), foreign, "theirs"],
    ["then deleted", (name) => cluster.raw("DELETE", `${all}/${name}`), { outcome: "created" }, "2"],
  ])("an object that was found and %s is read again", async (what, change, expected, value) => {
    const name = what.replaceAll(" ", "-");
    await cluster.raw("POST", all, { body: { ...configMap(`default/${name}`), metadata: { name } } as never });
    const { client } = meanwhile("apply", async (nth) => (nth === 1 ? change(name) : undefined));
    const result = await applySet(client, applyRequest(name, [configMap(`default/${name}`, { k: "2" })]));
    expect(result.objects).toMatchObject([expected]);
    expect(await dataOf(name)).toEqual({ k: value });
  });

  test.each([
    [3, "configured", 4],
    [99, "failed", 4],
  ])(
    "an object that changes %i times during its apply is tried four times at most",
    async (changes, outcome, applies) => {
      const name = `changes-${changes}`;
      const inventory = await cluster.applied(name, [configMap(`default/${name}`)]);
      const { client, calls } = meanwhile("apply", async (nth) => {
        if (nth <= changes) throw refused({ status: 409, reason: "Conflict", message: "the object has been modified" });
      });
      const objects = [configMap(`default/${name}`, { k: "2" })];
      const result = await applySet(client, applyRequest(name, objects, { inventory }));
      expect(result.objects).toMatchObject([{ outcome }]);
      expect(calls.filter((call) => call === "apply")).toHaveLength(applies);
      const [object] = result.objects;
      if (object?.outcome === "failed") expect(object.failure).toMatchObject({ class: "conflict", retryable: true });
    },
  );

  test("an object that cannot be read again fails with the reason", async () => {
    const inventory = await cluster.applied("unread", [configMap("default/unread")]);
    await patched("unread", { data: { more: "x" } });
    const { client } = meanwhile("get", async () => {
      throw refused({ status: 403, reason: "Forbidden", message: "not for you" });
    });
    const objects = [configMap("default/unread", { k: "2" })];
    const result = await applySet(client, applyRequest("unread", objects, { inventory }));
    expect(result.objects).toMatchObject([{ outcome: "failed", failure: { reason: "Forbidden" } }]);
  });
});

describe("fields that kubectl set", () => {
  const madeByKubectl = (name: string) =>
    cluster.raw("POST", `${all}?fieldManager=kubectl-client-side-apply`, {
      body: {
        ...configMap(`default/${name}`, { old: "1", k: "0" }),
        metadata: { name, annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
      } as never,
    });

  test.each([
    ["a writer comes between", { status: 409, reason: "Conflict", message: "the object has been modified" }, 1],
    ["what is taken over has moved", { status: 422, reason: "Invalid", message: "test failed" }, 1],
    ["a writer comes between each time", { status: 409, reason: "Conflict", message: "the object was modified" }, 99],
  ])("fields of kubectl are taken over if %s", async (what, facts, times) => {
    const name = what.replaceAll(" ", "-");
    await madeByKubectl(name);
    const { client, calls } = meanwhile("patch", async (nth) => {
      if (nth <= times) throw refused(facts);
    });
    const result = await applySet(client, applyRequest(name, [configMap(`default/${name}`, { k: "1" })]));
    // The remaining fields are taken over at the next check.
    expect(result.outcome).toBe("applied");
    expect(await dataOf(name)).toEqual(times === 1 ? { k: "1" } : { k: "1", old: "1" });
    expect(calls.filter((call) => call === "patch")).toHaveLength(times === 1 ? 2 : 3);
  });

  test("fields of kubectl that may not be taken over are reported", async () => {
    await madeByKubectl("not-allowed");
    const { client } = meanwhile("patch", async () => {
      throw refused({ status: 403, reason: "Forbidden", message: "no patches" });
    });
    const result = await applySet(client, applyRequest("not-allowed", [configMap("default/not-allowed", { k: "1" })]));
    expect(result.objects).toMatchObject([{ outcome: "failed", failure: { class: "forbidden" } }]);
  });
});

describe("an object that is recorded without a uid", () => {
  const job = manifest({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "once", namespace: "default" },
    spec: {
      ttlSecondsAfterFinished: 0,
      template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "a" }] } },
    },
  });
  const jobs = "/apis/batch/v1/namespaces/default/jobs";
  const unseen = { uid: "", resourceVersion: "", generation: 0, ownedHash: "", valuesHash: "" };

  test("a Job that is recorded without a uid is not run again, and a foreign Job with its name is refused", async () => {
    const before = await cluster.applied("once", [job]);
    await cluster.raw("DELETE", `${jobs}/once?propagationPolicy=Background`);
    const inventory = { ...before, entries: before.entries.map((entry) => ({ ...entry, ...unseen })) };
    expect((await cluster.apply("once", [job], { inventory })).objects).toMatchObject([{ outcome: "unchanged" }]);
    expect(await cluster.statusOf(`${jobs}/once`)).toBe(404);
    const theirs = { ...job, metadata: { name: "once", ...ofHelm } };
    await cluster.raw("POST", jobs, { body: theirs as never });
    expect((await cluster.apply("once", [job], { inventory })).objects).toMatchObject([foreign]);
  });

  test("another object that is recorded without a uid is created, and a foreign one with its name is refused", async () => {
    const before = await cluster.applied("absent", [configMap("default/absent", { k: "1" })]);
    const inventory = { ...before, entries: before.entries.map((entry) => ({ ...entry, ...unseen })) };
    await remade("absent", ofHelm);
    const objects = [configMap("default/absent", { k: "2" })];
    expect((await cluster.apply("absent", objects, { inventory })).objects).toMatchObject([foreign]);
    expect(await dataOf("absent")).toEqual({ k: "theirs" });
    await cluster.raw("DELETE", `${all}/absent`);
    expect((await cluster.apply("absent", objects, { inventory })).objects).toMatchObject([{ outcome: "created" }]);
    expect((await cluster.apply("absent", objects, { inventory })).objects).toMatchObject([{ outcome: "unchanged" }]);
  });
});

describe("the parent of a set", () => {
  const parents = "/api/v1/namespaces/starling-system/configmaps";
  const pathOf = (set: string) => `${parents}/${parentName(claimFor(set))}`;
  const begin = (set: string, client = cluster.client) =>
    ensureParent(client, { claim: claimFor(set), groupKinds: [] });

  /** A client for a cluster without the Namespace of the parents, whose creation fails with these facts. */
  function first(set: string, facts: Partial<ApplyErrorFacts>) {
    const calls: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method !== "create") return;
      calls.push(name);
      if (name === "starling-system") throw refused(facts);
    });
    const unseen = clientWith(client, {
      get: async (kind, key, options) =>
        key.name === "starling-system" ? undefined : cluster.client.get(kind, key, options),
    });
    return { calls, begun: begin(set, unseen) };
  }

  test("the parent is written at once if another worker makes its Namespace right before", async () => {
    await begin("other-worker");
    const { begun, calls } = first("beside", { status: 409, reason: "AlreadyExists", message: "already exists" });
    expect(await begun).toMatchObject({ kind: "written" });
    expect(calls).toEqual(["starling-system", parentName(claimFor("beside"))]);
  });

  test("the parent is not written if its Namespace may not be made, and that is reported", async () => {
    const { begun, calls } = first("kept-out", { status: 403, reason: "Forbidden", message: "no namespaces for you" });
    await expect(begun).rejects.toMatchObject({ class: "forbidden", message: expect.stringContaining("for you") });
    expect(calls).toEqual(["starling-system"]);
  });

  test("a parent that is deleted right before it is written is created again", async () => {
    await begin("gone-parent");
    const { client } = meanwhile("replace", () => cluster.raw("DELETE", pathOf("gone-parent")));
    expect(await begin("gone-parent", client)).toMatchObject({ kind: "written" });
    expect(await cluster.statusOf(pathOf("gone-parent"))).toBe(200);
  });

  test.each([
    ["no uid", undefined],
    ["an invalid uid", "x\ny"],
  ])("the parent is not written to a cluster that has %s", async (_what, uid) => {
    const client = clientWith(cluster.client, {
      get: async () => (uid === undefined ? undefined : ({ metadata: { name: "kube-system", uid } } as never)),
    });
    const result = await begin("nobody", client);
    expect(result).toMatchObject({ kind: "refused", reason: "IdentityMismatch" });
    expect(result).not.toHaveProperty("otherUid");
    expect(await cluster.statusOf(pathOf("nobody"))).toBe(404);
  });

  test.each([
    ["disappears", { status: 404, reason: "NotFound", message: "not found" }, true],
    ["is created again", { status: 409, message: "Precondition failed: UID in precondition" }, true],
    ["may not be deleted", { status: 403, reason: "Forbidden", message: "no" }, false],
  ])("the deletion of a parent that %s ends as expected", async (what, facts, isOver) => {
    const set = `deleted-${what.replaceAll(" ", "-")}`;
    await begin(set);
    const { client } = meanwhile("delete", async () => {
      throw refused(facts);
    });
    const result = await deleteParent(client, claimFor(set)).catch((error: unknown) => error);
    if (isOver) expect(result).toBeUndefined();
    else expect(result).toMatchObject({ class: "forbidden" });
  });

  test("a parent that may not be written is reported at once", async () => {
    await begin("read-only");
    const { client, calls } = meanwhile("replace", async () => {
      throw refused({ status: 403, reason: "Forbidden", message: "no" });
    });
    await expect(begin("read-only", client)).rejects.toMatchObject({ class: "forbidden" });
    expect(calls.filter((call) => call === "replace")).toHaveLength(1);
    expect(stringAt(await cluster.raw("GET", pathOf("read-only")), "metadata", "name")).toBeDefined();
  });
});

describe("if the time of a run ends while it reads", () => {
  const silence = { message: "no answer", causes: [], code: "ETIMEDOUT" };
  const unanswered = () => new KubeError({ method: "GET", path: "/", secret: false }, silence);

  /** A client whose n-th read of an object ends with the time of the run, and whose earlier reads fail. */
  function cutAtRead(nth: number, of: string) {
    const deadline = inSeconds(60);
    let now = new Date();
    let reads = 0;
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method !== "get" || name !== of) return;
      reads += 1;
      if (reads < nth) throw refused({ status: 503, message: "try again" });
      now = deadline;
      throw unanswered();
    });
    return { client, deadline, clock: { now: () => now, sleep: async () => {} } };
  }

  test.each([
    ["together with others", 1, "skipped"],
    ["alone", 2, "waiting"],
  ])("an object that is read %s is left for the next run, and is no failure", async (_how, nth, outcome) => {
    const { client, ...time } = cutAtRead(nth, "cut-read");
    const result = await applySet(client, applyRequest("cut-read", [configMap("default/cut-read")], time));
    expect(result).toMatchObject({ outcome: "waiting", timeWasUp: true, objects: [{ outcome, reason: "OutOfTime" }] });
    expect(await cluster.statusOf(`${all}/cut-read`)).toBe(404);
  });

  test("an object that changed meanwhile is left for the next run, too", async () => {
    const inventory = await cluster.applied("cut-again", [configMap("default/cut-again", { k: "1" })]);
    await patched("cut-again", { data: { more: "x" } });
    const { client, ...time } = cutAtRead(1, "cut-again");
    const objects = [configMap("default/cut-again", { k: "2" })];
    const result = await applySet(client, applyRequest("cut-again", objects, { inventory, ...time }));
    expect(result).toMatchObject({ outcome: "waiting", timeWasUp: true, objects: [{ reason: "OutOfTime" }] });
    expect(await dataOf("cut-again")).toMatchObject({ k: "1" });
  });
});

test("an object that Starling only creates is left unchanged if another writer creates it meanwhile", async () => {
  const once = configMap("default/once", { k: "1" });
  const object = { ...once, metadata: { ...once.metadata, annotations: { "starling.dev/apply": "IfNotPresent" } } };
  const { client, calls } = meanwhile("apply", (nth) => (nth === 1 ? made("once") : Promise.resolve()));
  const result = await applySet(client, applyRequest("once", [object]));
  expect(result.objects).toMatchObject([{ outcome: "unchanged", entry: { watched: "presence" } }]);
  expect(calls.filter((call) => call === "apply")).toHaveLength(1);
  expect(await dataOf("once")).toEqual({ k: "theirs" });
});
