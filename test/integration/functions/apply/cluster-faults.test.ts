/** Every failure knob of a cluster against the real worker: what it says, what it leaves alone, how it recovers. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadInventory } from "#functions/apply/sync-blobs.ts";
import { type ClusterFaults, type ClusterHost, startClusterHost } from "#local/cluster/cluster-host.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-cluster-client.ts";
import { type KubeEndpoint, KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import type { KubeError } from "#shared/domain/kube-error.ts";
import { type ManifestObject, stringAt } from "#shared/domain/kube-object.ts";
import { partOfLabel } from "#shared/domain/membership.ts";
import { setIdOf } from "#shared/domain/parent-object.ts";
import type { Observed, Phase } from "#shared/domain/rows/sync-row.ts";
import { configMap, definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const connectTimeoutMs = 300;

let host: ClusterHost;
let endpoint: KubeEndpoint;
let kube: KubeConnection;
let world: WorkerWorld;

beforeEach(async () => {
  host = await startClusterHost({ controllers: "off" });
  host.addCluster("c1");
  const { server, caData, token } = await host.openPort("c1");
  endpoint = { server, caData, credentials: { token: async () => token }, connectTimeoutMs };
  kube = new KubeConnection(endpoint);
  world = await new WorkerWorld({
    connect: async (_cluster, deadline) => kube.client({ deadlineMs: deadline.getTime() }),
    distrust() {},
  }).begin();
});

function reconnect(): void {
  kube.close();
  kube = new KubeConnection(endpoint);
}

afterEach(async () => {
  kube.close();
  await host.stop();
});

const before = [namespace("shop"), configMap("shop/kept"), configMap("shop/changed"), configMap("shop/gone")];
const after = [namespace("shop"), configMap("shop/kept"), configMap("shop/changed", { k: "2" }), configMap("shop/new")];

/** `ConfigMap kept 1`: what carries the label of a Sync. */
function members(): string[] {
  return host
    .objects("c1")
    .filter((object) => stringAt(object, "metadata", "labels", partOfLabel) !== undefined)
    .map((object) => `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`)
    .sort();
}

function names(objects: readonly ManifestObject[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
}

async function recorded(name = "web"): Promise<string[]> {
  const row = await world.sync(name);
  if (row === undefined) throw new Error(`there is no Sync ${name}`);
  const setId = setIdOf({ syncNamespace: row.namespace, syncName: name });
  const { entries } = await loadInventory(row, setId, world.blobs);
  return entries.map(({ id }) => `${id.kind} ${id.name}`).sort();
}

async function observed(name = "web"): Promise<Observed> {
  const seen = (await world.sync(name))?.observed;
  if (seen === undefined) throw new Error(`nothing was observed of ${name}`);
  return seen;
}

/** Looks until `web` is ready; the planner's part, another attempt for a cluster that answers again, included. */
async function recover(
  objects: readonly ManifestObject[],
  { until: wanted = "Ready" }: { readonly until?: Phase } = {},
): Promise<void> {
  // What was discovered is believed for a second.
  for (const until = Date.now() + 5_000; Date.now() < until; await sleep(50)) {
    world.aheadMs += 700_000;
    await world.work();
    const { phase } = await observed();
    if (phase === wanted) return;
    if (phase === "Reachable") await world.assign("web", objects);
  }
  throw new Error(`it did not recover: ${JSON.stringify(await observed())}`);
}

async function synced(): Promise<void> {
  await world.assign("web", before);
  await world.work();
  expect(await world.phase("web")).toBe("Ready");
  world.sender.take();
}

/** What Starling sent, but for reading. */
function writes(): string[] {
  return host.requests().flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));
}

const policy = { name: "policy.example.com", namespaces: ["shop"] };

interface Knob {
  readonly faults: ClusterFaults;
  readonly expected: { readonly phase: Phase; readonly reason: string; readonly message: RegExp };
  /** Of the first object. */
  readonly trouble?: string;
}

const knobs: Readonly<Record<string, Knob>> = {
  "a network that refuses": {
    faults: { network: "refused" },
    expected: { phase: "Unreachable", reason: "Unreachable", message: /connect ECONNREFUSED 127\.0\.0\.1:\d+/ },
  },
  "a network that hangs": {
    faults: { network: "hangs" },
    expected: { phase: "Unreachable", reason: "Unreachable", message: /no connection within 300 ms/ },
  },
  "an expired certificate": {
    faults: { certificate: "expired" },
    expected: { phase: "Unreachable", reason: "Unreachable", message: /certificate has expired/ },
  },
  "connections that are cut": {
    faults: { resets: {} },
    expected: { phase: "Unreachable", reason: "Unreachable", message: /ECONNRESET/ },
  },
  "503 for everything": {
    faults: { errors: { status: 503 } },
    expected: { phase: "Retrying", reason: "ServiceUnavailable", message: /unable to handle the request/ },
  },
  "500 for some objects": {
    faults: { errors: { status: 500, pathIncludes: "/configmaps/changed" } },
    expected: { phase: "Retrying", reason: "ApplyFailed", message: /3 of 4 objects applied/ },
    trouble: "etcdserver: leader changed",
  },
  "a webhook that rejects": {
    faults: { webhooks: [{ ...policy, does: "deny", message: "not today" }] },
    expected: { phase: "Failed", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    trouble: 'admission webhook "policy.example.com" denied the request: not today',
  },
  "a webhook that rejects with 400": {
    faults: { webhooks: [{ ...policy, does: "deny", message: "not today", code: 400 }] },
    expected: { phase: "Failed", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    trouble: 'admission webhook "policy.example.com" denied the request: not today',
  },
  "a webhook that rejects what Starling keeps in the cluster": {
    faults: { webhooks: [{ name: "all.example.com", kinds: ["ConfigMap"], does: "deny", message: "not today" }] },
    expected: { phase: "Failed", reason: "Forbidden", message: /"all\.example\.com" denied the request: not today/ },
  },
  "a webhook that fails": {
    faults: { webhooks: [{ ...policy, does: "fail" }] },
    expected: { phase: "Retrying", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    trouble: 'failed calling webhook "policy.example.com"',
  },
  "a webhook that rejects deletes": {
    faults: { webhooks: [{ ...policy, does: "deny", operations: ["DELETE"], message: "not today" }] },
    expected: { phase: "Failed", reason: "PruneFailed", message: /1 objects still to be deleted/ },
    trouble: 'admission webhook "policy.example.com" denied the request: not today',
  },
};

describe("while it lasts", () => {
  test.each(Object.entries(knobs))("%s is told, and nothing is lost or half recorded", async (_name, knob) => {
    await synced();
    // As between two invocations of a function: nothing is asked on connections of the last one.
    reconnect();
    await host.setFaults("c1", knob.faults);
    await world.assign("web", after);
    await world.work();
    const { phase, reason, message, troubles } = await observed();
    expect({ phase, reason, message }).toEqual({
      ...knob.expected,
      message: expect.stringMatching(knob.expected.message),
    });
    expect(troubles[0]?.message ?? "").toContain(knob.trouble ?? "");
    expect(members()).toContain("ConfigMap gone");
    expect(await recorded()).toEqual(expect.arrayContaining(members()));
    await host.setFaults("c1", {});
    await recover(after);
    expect(members()).toEqual(names(after));
    expect(await recorded()).toEqual(names(after));
  });

  test("a network that goes away in the middle is told, and the rest is done when it is back", async () => {
    await synced();
    const more = Array.from({ length: 30 }, (_, index) => configMap(`shop/more-${index}`));
    const stop = host.onRequest(({ path }) => {
      if (path.endsWith("/more-5")) void host.setFaults("c1", { network: "refused" });
    });
    await world.assign("web", [...after, ...more]);
    await world.work();
    stop();
    expect(await observed()).toMatchObject({
      phase: "Unreachable",
      reason: "Unreachable",
      message: expect.stringMatching(/of 34 objects applied: .* ECONNREFUSED/),
    });
    expect(members()).toContain("ConfigMap gone");
    await host.setFaults("c1", {});
    await recover([...after, ...more]);
    expect(members()).toEqual(names([...after, ...more]));
    expect(await recorded()).toEqual(names([...after, ...more]));
  });

  test("429 without an end is tried again later, and is no failure", async () => {
    await synced();
    await host.setFaults("c1", { throttle: { retryAfterSeconds: 1 } });
    await world.assign("web", after);
    await world.work({ remainingMs: 3_000 });
    expect(await observed()).toMatchObject({ phase: "Retrying", reason: "TooManyRequests" });
    await host.setFaults("c1", {});
    await recover(after);
    expect(members()).toEqual(names(after));
  });
});

test("of connections that fell silent together, one is waited for", async () => {
  const transport = new KubeTransport(endpoint);
  const send = () =>
    transport.send({ method: "GET", path: "/version", timeoutMs: 2 * connectTimeoutMs, maxBodyBytes: 1e6 }).then(
      ({ status }) => status,
      (error: KubeError) => error.reason,
    );
  expect(await Promise.all(Array.from({ length: 5 }, send))).toEqual([200, 200, 200, 200, 200]);
  await host.setFaults("c1", { network: "hangs" });
  expect([await send(), await send()]).toEqual(["ETIMEDOUT", "ERR_CONNECT_TIMEOUT"]);
  transport.close();
});

test("429 is waited out as long as the server asks", async () => {
  await host.setFaults("c1", {
    throttle: { next: 2, retryAfterSeconds: 1, methods: ["PATCH"], pathIncludes: "/shop" },
  });
  await world.assign("web", [namespace("shop")]);
  await world.work();
  expect(await observed()).toMatchObject({ phase: "Ready", tries: 0, troubles: [] });
  const patches = host.requests().filter(({ method }) => method === "PATCH");
  expect(patches.map(({ status }) => status)).toEqual([429, 429, 201]);
  for (const [index, { at }] of patches.slice(1).entries()) {
    expect(at - (patches[index]?.at ?? 0)).toBeGreaterThanOrEqual(990);
  }
});

describe("answers that are lost after the effect", () => {
  test.each([
    ["connections that are cut", { resets: { phase: "after", probability: 0.3 } }],
    ["504", { errors: { phase: "after", status: 504, probability: 0.3 } }],
  ] satisfies [string, ClusterFaults][])("%s: everything is done once, and told once", async (_name, faults) => {
    await synced();
    for (const seed of [1, 2, 3]) {
      const [from, to] = seed % 2 === 1 ? [before, after] : [after, before];
      await host.setFaults("c1", { ...faults, seed });
      await world.assign("web", to);
      await world.work();
      if ((await world.phase("web")) !== "Ready") await recover(to);
      expect(members(), `seed ${seed} from ${names(from)}`).toEqual(names(to));
      expect(await recorded()).toEqual(names(to));
      const about = { kind: "Sync", cluster: "c1", namespace: "tests", name: "web" };
      expect(world.sender.take().filter((message) => message.to === "report")).toEqual([{ to: "report", about }]);
    }
  });

  test("what is deleted is deleted once, and the Sync is gone", async () => {
    await world.assign("web", [configMap("default/a"), configMap("default/b"), configMap("default/c")]);
    await world.work();
    for (const seed of [4, 5]) {
      await host.setFaults("c1", { resets: { phase: "after", probability: 0.3 }, seed });
      host.clearRequests();
      await world.assignDelete("web");
      await recover([], { until: "Gone" });
      await host.setFaults("c1", {});
      expect(members()).toEqual([]);
      expect(host.objects("c1").filter(({ kind }) => kind === "ConfigMap")).toEqual([]);
      await world.assign("web", [configMap("default/a"), configMap("default/b"), configMap("default/c")]);
      await recover([]);
    }
  });

  test("what was made and never confirmed is pruned when it leaves the source", async () => {
    await synced();
    await host.setFaults("c1", { resets: { phase: "after", methods: ["PATCH"], pathIncludes: "/configmaps/new" } });
    await world.assign("web", after);
    await world.work();
    expect(await observed()).toMatchObject({ phase: "Retrying", reason: "ApplyFailed" });
    expect(members()).toEqual(expect.arrayContaining(["ConfigMap new", "ConfigMap gone"]));
    await host.setFaults("c1", {});
    await world.assign("web", before);
    await recover(before);
    expect(members()).toEqual(names(before));
  });
});

describe("a webhook that rewrites", () => {
  test("makes no drift of what it changes", async () => {
    const patch = [
      { op: "add", path: "/data/injected", value: "yes" },
      { op: "replace", path: "/data/k", value: "theirs" },
    ];
    const rewrites = {
      name: "inject.example.com",
      does: "rewrite" as const,
      kinds: ["ConfigMap"],
      namespaces: ["shop"],
      patch,
    };
    await host.setFaults("c1", { webhooks: [rewrites] });
    await synced();
    host.clearRequests();
    for (let look = 0; look < 2; look++) {
      world.aheadMs += 700_000;
      await world.work();
      expect(await observed()).toMatchObject({ phase: "Ready" });
      expect(await observed()).not.toHaveProperty("drift");
    }
    expect(writes()).toEqual([]);
  });
});

describe("a cluster that is replaced behind its address", () => {
  const drifts = ["correct", "report", "off"] as const;

  test.each(drifts)("is found at the next look where drift is: %s, and nothing is written", async (drift) => {
    await world.assign("web", before, { drift });
    await world.work();
    const { uid } = await host.replaceCluster("c1");
    host.clearRequests();
    world.aheadMs += 700_000;
    await world.work();
    expect(await observed()).toMatchObject({
      phase: "Unreachable",
      reason: "IdentityMismatch",
      message: expect.stringContaining(uid),
    });
    expect(writes()).toEqual([]);
    expect(await recorded()).toEqual(names(before));
  });

  test("is not given the next revision", async () => {
    await synced();
    await host.replaceCluster("c1");
    host.clearRequests();
    await world.assign("web", after);
    await world.work();
    expect(await observed()).toMatchObject({ phase: "Unreachable", reason: "IdentityMismatch" });
    expect(writes()).toEqual([]);
    expect(members()).toEqual([]);
    expect(await recorded()).toEqual(names(before));
  });
});

describe("an aggregated API that is down", () => {
  const group = "metrics.example.com";
  const down: ClusterFaults = { unavailableApis: [`v1.${group}`] };
  const withWidget = [configMap("default/kept"), widget(group, "default/w")];

  beforeEach(async () => {
    await world.assign("api", [definition(group)]);
    await world.work();
    await world.assign("web", withWidget);
    await recover(withWidget);
    expect(members()).toContain("Widget w");
  });

  /** What was discovered while the API was up, or nothing. */
  describe.each([
    ["knows", true],
    ["does not know", false],
  ] as const)("for a worker that %s its kinds", (_name, warm) => {
    async function fail(): Promise<void> {
      await host.setFaults("c1", down);
      if (!warm) reconnect();
    }

    test("stops no Sync that does not use it", async () => {
      const [first, next] = [
        [namespace("other"), configMap("other/a")],
        [namespace("other"), configMap("other/b")],
      ];
      await world.assign("other", first);
      await world.work();
      await fail();
      await world.assign("other", next);
      await world.work();
      expect(await observed("other")).toMatchObject({ phase: "Ready" });
      world.aheadMs += 700_000;
      await world.work();
      expect(await observed("other")).toMatchObject({ phase: "Ready" });
      expect(await recorded("other")).toEqual(names(next));
    });

    test("is told by those that use it, and their other objects are applied", async () => {
      await fail();
      const more = [...withWidget, configMap("default/more")];
      await world.assign("web", more);
      await world.work();
      expect(await observed()).toMatchObject({
        phase: "Retrying",
        troubles: [{ object: "Widget.metrics.example.com default/w" }],
      });
      expect((await observed()).troubles[0]?.message).toContain(group);
      expect(members()).toContain("ConfigMap more");
      expect(await recorded()).toContain("Widget w");
      await host.setFaults("c1", {});
      await recover(more);
    });

    test("keeps what left the source in the inventory, and lets go of it later", async () => {
      await fail();
      const without = withWidget.slice(0, 1);
      await world.assign("web", without);
      await world.work();
      expect((await observed()).phase).toMatch(/^(Applying|Retrying)$/);
      expect(await recorded()).toContain("Widget w");
      await host.setFaults("c1", {});
      await recover(without);
      expect(members()).not.toContain("Widget w");
      expect(await recorded()).toEqual(names(without));
    });

    test("holds up the deletion of a Sync that uses it, and nothing of it is forgotten", async () => {
      await fail();
      await world.assignDelete("web");
      await world.work();
      expect((await observed()).phase).toMatch(/^(Applying|Retrying)$/);
      expect(await recorded()).toEqual(["Widget w"]);
      expect(host.objects("c1").some((object) => stringAt(object, "metadata", "namespace") === "starling-system")).toBe(
        true,
      );
      await host.setFaults("c1", {});
      await recover([], { until: "Gone" });
      expect(members()).toEqual(["CustomResourceDefinition widgets.metrics.example.com"]);
    });

    test("keeps Namespaces, for nobody knows what is in them", async () => {
      const [first, next] = [[namespace("other"), configMap("default/a")], [configMap("default/a")]];
      await world.assign("other", first);
      await world.work();
      await fail();
      await world.assign("other", next);
      await world.work();
      const { phase, troubles } = await observed("other");
      expect(phase).toMatch(/^(Applying|Retrying)$/);
      expect(troubles).toMatchObject([{ object: "Namespace other" }]);
      expect(troubles[0]?.message).toContain(group);
      expect(members()).toContain("Namespace other");
    });

    test("is neither drift nor the end of those that use it", async () => {
      await fail();
      world.aheadMs += 700_000;
      await world.work();
      expect((await observed()).phase).toMatch(/^(Verifying|Retrying)$/);
      expect(await observed()).not.toHaveProperty("drift");
      expect(await recorded()).toEqual(names(withWidget));
      await host.setFaults("c1", {});
      await recover(withWidget);
    });
  });
});
