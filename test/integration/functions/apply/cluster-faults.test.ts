/** The real worker meets each fault of a cluster: the tests check its report, the untouched objects and the recovery. */

import type { ClusterFaults } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import type { KubeError } from "#shared/kube/kube-error.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { connectTimeoutMs, namesOf, startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startClusterWorker);

const before = [namespace("shop"), configMap("shop/kept"), configMap("shop/changed"), configMap("shop/gone")];
const after = [namespace("shop"), configMap("shop/kept"), configMap("shop/changed", { k: "2" }), configMap("shop/new")];

async function synced(): Promise<void> {
  await worker.world.assign("web", before);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  worker.world.sender.take();
}

/** The requests that Starling sent, except reads. */
function writes(): string[] {
  return worker.host.requests().flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));
}

const policy = { name: "policy.example.com", namespaces: ["shop"] };

interface Knob {
  readonly faults: ClusterFaults;
  readonly expected: { readonly phase: Phase; readonly reason: string; readonly message: RegExp };
  /** The path of the first object. */
  readonly problem?: string;
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
    problem: "etcdserver: leader changed",
  },
  "a webhook that rejects": {
    faults: { webhooks: [{ ...policy, does: "deny", message: "not today" }] },
    expected: { phase: "Failed", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    problem: 'admission webhook "policy.example.com" denied the request: not today',
  },
  "a webhook that rejects with 400": {
    faults: { webhooks: [{ ...policy, does: "deny", message: "not today", code: 400 }] },
    expected: { phase: "Failed", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    problem: 'admission webhook "policy.example.com" denied the request: not today',
  },
  "a webhook that rejects Starling's own parent object": {
    faults: { webhooks: [{ name: "all.example.com", kinds: ["ConfigMap"], does: "deny", message: "not today" }] },
    expected: { phase: "Failed", reason: "Forbidden", message: /"all\.example\.com" denied the request: not today/ },
  },
  "a webhook that fails": {
    faults: { webhooks: [{ ...policy, does: "fail" }] },
    expected: { phase: "Retrying", reason: "ApplyFailed", message: /1 of 4 objects applied/ },
    problem: 'failed calling webhook "policy.example.com"',
  },
  "a webhook that rejects deletes": {
    faults: { webhooks: [{ ...policy, does: "deny", operations: ["DELETE"], message: "not today" }] },
    expected: { phase: "Failed", reason: "PruneFailed", message: /1 object still to be deleted/ },
    problem: 'admission webhook "policy.example.com" denied the request: not today',
  },
};

describe("while a fault lasts", () => {
  test.each(Object.entries(knobs))(
    "%s: the fault is reported, no object is lost, and the inventory is complete",
    async (_name, knob) => {
      await synced();
      // A new invocation of the function does not use the connections of the last one.
      worker.reconnect();
      await worker.host.setFaults("c1", knob.faults);
      await worker.world.assign("web", after);
      await worker.world.work();
      const { phase, reason, message, problems } = await worker.observed();
      expect({ phase, reason, message }).toEqual({
        ...knob.expected,
        message: expect.stringMatching(knob.expected.message),
      });
      expect(problems[0]?.message).toEqual(
        knob.problem === undefined ? undefined : expect.stringContaining(knob.problem),
      );
      expect(worker.members()).toContain("ConfigMap gone");
      expect(await worker.recorded()).toEqual(expect.arrayContaining(worker.members()));
      await worker.host.setFaults("c1", {});
      await worker.recover(after);
      expect(worker.members()).toEqual(namesOf(after));
      expect(await worker.recorded()).toEqual(namesOf(after));
    },
  );

  test("a network that fails during an apply is reported, and the apply is completed when it works again", async () => {
    await synced();
    const more = Array.from({ length: 30 }, (_, index) => configMap(`shop/more-${index}`));
    const stop = worker.host.onRequest(({ path }) => {
      if (path.endsWith("/more-5")) void worker.host.setFaults("c1", { network: "refused" });
    });
    await worker.world.assign("web", [...after, ...more]);
    await worker.world.work();
    stop();
    expect(await worker.observed()).toMatchObject({
      phase: "Unreachable",
      reason: "Unreachable",
      // A busy machine may refuse only after the client has given up.
      message: expect.stringMatching(
        /^([12]?\d|3[0-3]) of 34 objects applied: .* was not answered: .*(ECONNREFUSED|ERR_CONNECT_TIMEOUT)/,
      ),
    });
    expect(worker.members()).toContain("ConfigMap gone");
    await worker.host.setFaults("c1", {});
    await worker.recover([...after, ...more]);
    expect(worker.members()).toEqual(namesOf([...after, ...more]));
    expect(await worker.recorded()).toEqual(namesOf([...after, ...more]));
  });

  test("a cluster that always answers 429 is tried again later, and does not count as failed", async () => {
    await synced();
    await worker.host.setFaults("c1", { throttle: { retryAfterSeconds: 1 } });
    await worker.world.assign("web", after);
    await worker.world.work({ remainingMs: 3_000 });
    expect(await worker.observed()).toMatchObject({ phase: "Retrying", reason: "TooManyRequests" });
    await worker.host.setFaults("c1", {});
    await worker.recover(after);
    expect(worker.members()).toEqual(namesOf(after));
  });
});

test("a client waits for only one of several connections that fall silent together", async () => {
  const transport = new KubeTransport(worker.endpoint);
  const send = () =>
    transport.send({ method: "GET", path: "/version", timeoutMs: 2 * connectTimeoutMs, maxBodyBytes: 1e6 }).then(
      ({ status }) => status,
      (error: KubeError) => error.reason,
    );
  expect(await Promise.all(Array.from({ length: 5 }, send))).toEqual([200, 200, 200, 200, 200]);
  await worker.host.setFaults("c1", { network: "hangs" });
  expect([await send(), await send()]).toEqual(["ETIMEDOUT", "ERR_CONNECT_TIMEOUT"]);
  transport.close();
});

test("the client waits after a 429 as long as the server asks", async () => {
  await worker.host.setFaults("c1", {
    throttle: { next: 2, retryAfterSeconds: 1, methods: ["PATCH"], pathIncludes: "/shop" },
  });
  await worker.world.assign("web", [namespace("shop")]);
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({ phase: "Ready", tries: 0, problems: [] });
  const patches = worker.host.requests().filter(({ method }) => method === "PATCH");
  expect(patches.map(({ status }) => status)).toEqual([429, 429, 201]);
  for (const [index, { at }] of patches.slice(1).entries()) {
    expect(at - (patches[index]?.at ?? 0)).toBeGreaterThanOrEqual(990);
  }
});

describe("answers that are lost after the effect", () => {
  test.each([
    ["connections that are cut after a write", { resets: { phase: "after", probability: 0.3 } }],
    ["an answer 504 after a write", { errors: { phase: "after", status: 504, probability: 0.3 } }],
  ] satisfies [string, ClusterFaults][])(
    "with %s, each object is written once, and the outcome is reported once",
    async (_name, faults) => {
      await synced();
      for (const seed of [1, 2, 3]) {
        const [from, to] = seed % 2 === 1 ? [before, after] : [after, before];
        await worker.host.setFaults("c1", { ...faults, seed });
        await worker.world.assign("web", to);
        await worker.world.work();
        if ((await worker.world.phase("web")) !== "Ready") await worker.recover(to);
        expect(worker.members(), `seed ${seed} from ${namesOf(from)}`).toEqual(namesOf(to));
        expect(await worker.recorded()).toEqual(namesOf(to));
        const about = { kind: "Sync", cluster: "c1", namespace: "tests", name: "web" };
        expect(worker.world.sender.take().filter((message) => message.to === "report")).toEqual([
          { to: "report", about },
        ]);
      }
    },
  );

  test("a deletion whose answer is lost is sent once for each object, and the Sync is gone", async () => {
    await worker.world.assign("web", [configMap("default/a"), configMap("default/b"), configMap("default/c")]);
    await worker.world.work();
    for (const seed of [4, 5]) {
      await worker.host.setFaults("c1", { resets: { phase: "after", probability: 0.3 }, seed });
      worker.host.clearRequests();
      await worker.world.assignDelete("web");
      await worker.recover([], { until: "Gone" });
      await worker.host.setFaults("c1", {});
      expect(worker.members()).toEqual([]);
      expect(worker.host.objects("c1").filter(({ kind }) => kind === "ConfigMap")).toEqual([]);
      await worker.world.assign("web", [configMap("default/a"), configMap("default/b"), configMap("default/c")]);
      await worker.recover([]);
    }
  });

  test("an object that was made and never confirmed is pruned when it leaves the source", async () => {
    await synced();
    await worker.host.setFaults("c1", {
      resets: { phase: "after", methods: ["PATCH"], pathIncludes: "/configmaps/new" },
    });
    await worker.world.assign("web", after);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Retrying", reason: "ApplyFailed" });
    expect(worker.members()).toEqual(expect.arrayContaining(["ConfigMap new", "ConfigMap gone"]));
    await worker.host.setFaults("c1", {});
    await worker.world.assign("web", before);
    await worker.recover(before);
    expect(worker.members()).toEqual(namesOf(before));
  });
});

describe("a webhook that rewrites objects", () => {
  test("a webhook's changes are not taken for drift", async () => {
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
    await worker.host.setFaults("c1", { webhooks: [rewrites] });
    await synced();
    worker.host.clearRequests();
    for (let check = 0; check < 2; check++) {
      worker.world.aheadMs += 700_000;
      await worker.world.work();
      expect(await worker.observed()).toMatchObject({ phase: "Ready" });
      expect(await worker.observed()).not.toHaveProperty("drift");
    }
    expect(writes()).toEqual([]);
  });
});

describe("a cluster that is replaced behind its address", () => {
  const drifts = ["correct", "report", "off"] as const;

  test.each(drifts)(
    "a replaced cluster is found at the next check with drift %s, and nothing is written to it",
    async (drift) => {
      await worker.world.assign("web", before, { drift });
      await worker.world.work();
      const { uid } = await worker.host.replaceCluster("c1");
      worker.host.clearRequests();
      worker.world.aheadMs += 700_000;
      await worker.world.work();
      expect(await worker.observed()).toMatchObject({
        phase: "Unreachable",
        reason: "IdentityMismatch",
        message: expect.stringContaining(uid),
      });
      expect(writes()).toEqual([]);
      expect(await worker.recorded()).toEqual(namesOf(before));
    },
  );

  test("a replaced cluster is not given the next revision", async () => {
    await synced();
    await worker.host.replaceCluster("c1");
    worker.host.clearRequests();
    await worker.world.assign("web", after);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Unreachable", reason: "IdentityMismatch" });
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual([]);
    expect(await worker.recorded()).toEqual(namesOf(before));
  });
});
