/** The findings of a check whose cluster is unreachable, refuses, or stops answering; the tests need no cluster. */

import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { LeaseLost } from "#functions/apply/lease/held-lease.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ApplyErrorFacts } from "#shared/kube/apply-error.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { Log } from "#shared/ports.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const at = "2026-11-20T08:00:00.000Z";

function asked(facts: Partial<ApplyErrorFacts>): KubeError {
  const request = { method: "GET", path: "/api/v1/namespaces/kube-system", secret: false };
  return new KubeError(request, { message: "as given", causes: [], ...facts });
}

function failed(code: ErrorCode, retry: "permanent" | "transient"): StarlingError {
  return new StarlingError(`because of ${code}`, { code, retry });
}

/** A worker of a cluster to which no connection succeeds. */
async function begin(error: unknown, aheadMs = 0) {
  const connector: ClusterConnector = {
    async connect() {
      world.aheadMs += aheadMs;
      throw error;
    },
    distrust: () => distrusted.push("c1"),
  };
  const distrusted: string[] = [];
  const errors: unknown[] = [];
  const log: Log = { info() {}, warn() {}, error: (message, fields) => errors.push({ message, ...fields }) };
  const world: WorkerWorld = await new WorkerWorld(connector).begin();
  await world.assign("web", [configMap("shop/a")]);
  return { world, errors, distrusted, work: () => world.work({ log }) };
}

async function observed(world: WorkerWorld): Promise<Observed> {
  const seen = (await world.sync("web"))?.observed;
  if (seen === undefined) throw new Error("nothing was observed");
  return seen;
}

describe("a worker of several Syncs", () => {
  /** The Syncs that were reported before each check began, when each check takes this long. */
  async function reportedBefore(eachMs: number): Promise<readonly (readonly string[])[]> {
    const reported: string[] = [];
    const before: string[][] = [];
    const connector: ClusterConnector = {
      async connect() {
        for (const message of world.sender.take())
          if (message.to === "report" && message.about.kind === "Sync") reported.push(message.about.name);
        before.push([...reported]);
        world.aheadMs += eachMs;
        throw asked({ code: "ERR_CONNECT_TIMEOUT" });
      },
      distrust() {},
    };
    const world: WorkerWorld = await new WorkerWorld(connector).begin();
    for (const name of ["a", "b", "c"]) await world.assign(name, [configMap("shop/a")]);
    await world.work();
    return before.slice(0, 3);
  }

  test("a worker reports each Sync before the next one when the cluster is slow", async () => {
    expect(await reportedBefore(10_000)).toEqual([[], ["a"], ["a", "b"]]);
  });

  test("a worker reports all Syncs at the end when the cluster is fast", async () => {
    expect(await reportedBefore(100)).toEqual([[], [], []]);
  });
});

const noCredentials: readonly ErrorCode[] = [
  "SecretNotFound",
  "SecretDenied",
  "SecretKeyDenied",
  "SecretUnbound",
  "SecretMismatch",
  "InvalidCredentials",
  "AddressRefused",
  "InvalidAuthority",
  "RoleDenied",
  "RegionDisabled",
  "TokenTooLarge",
  "EksDenied",
  "EksClusterNotFound",
  "EksClusterNotActive",
];

describe("the finding of a cluster that fails", () => {
  test.each<[string, unknown, Phase, string, string]>([
    ...noCredentials.map((code): [string, unknown, Phase, string, string] => [
      `with the error ${code} is Unreachable`,
      failed(code, "permanent"),
      ...(["Unreachable", code, `because of ${code}`] as const),
    ]),
    [
      "with an invalid row is Failed",
      failed("InvalidCluster", "permanent"),
      ...(["Failed", "InvalidCluster", "because of InvalidCluster"] as const),
    ],
    [
      "with a transient error of its cloud is tried again",
      failed("EksThrottled", "transient"),
      ...(["Retrying", "EksThrottled", "because of EksThrottled"] as const),
    ],
    [
      "without an address is Unreachable",
      asked({ code: "ENOTFOUND" }),
      ...(["Unreachable", "Unreachable", "as given"] as const),
    ],
    [
      "that resets connections is Unreachable",
      asked({ code: "ECONNRESET" }),
      ...(["Unreachable", "Unreachable", "as given"] as const),
    ],
    [
      "that rejects credentials is Unreachable",
      asked({ status: 401 }),
      ...(["Unreachable", "Unauthorized", "as given"] as const),
    ],
    [
      "that answers with server errors is tried again",
      asked({ status: 503 }),
      ...(["Retrying", "ServiceUnavailable", "cluster c1: "] as const),
    ],
    ["that forbids requests is Failed", asked({ status: 403 }), ...(["Failed", "Forbidden", "cluster c1: "] as const)],
  ])("a cluster %s", async (_what, error, phase, reason, said) => {
    const { world, errors, work, distrusted } = await begin(error);
    await work();
    expect(await observed(world)).toMatchObject({ phase, reason, message: expect.stringContaining(said) });
    expect(errors).toEqual([]);
    expect(distrusted).toEqual([]);
    expect((await world.lease())?.owner).toBeUndefined();
  });

  test("the message of an unreachable cluster does not name the cluster", async () => {
    const { world, work } = await begin(asked({ code: "ENOTFOUND" }));
    await work();
    expect((await observed(world)).message).not.toContain("cluster c1");
  });

  test.each([
    ["answered with an error", asked({ status: 500 }), true],
    ["did not answer", asked({ code: "ECONNREFUSED" }), false],
    ["was never asked", failed("EksThrottled", "transient"), false],
  ])("the time at which a cluster was last seen is right for a cluster that %s", async (_what, error, isSeen) => {
    const { world, work } = await begin(error);
    await work();
    const { status } = (await world.table.get(keys.cluster("c1"))) ?? {};
    expect(status?.lastSeenAt !== undefined).toBe(isSeen);
  });
});

test("a defect in the code is tried again, its message is only in the log, and other Syncs get their turn", async () => {
  const { world, work, errors } = await begin(new TypeError("x is not a function"));
  await work();
  const message = "an internal error; the log of apply has it";
  expect(await observed(world)).toMatchObject({ phase: "Retrying", reason: "Internal", message });
  const found = { kind: "Sync", namespace: "tests", name: "web", owner: "Sync/web", cluster: "c1" };
  const of = { revision: "main@sha1:1", rollout: "web-1" };
  expect(errors).toEqual([{ message: "a sync met a defect", ...found, ...of, error: "x is not a function" }]);
});

test("a lost lease is an error, and not a finding", async () => {
  const lease = { key: keys.lease("c1"), owner: "me", fence: 1, desired: 0, until: new Date(), routine: {} };
  const { world, work } = await begin(new LeaseLost(lease));
  await expect(work()).rejects.toBeInstanceOf(LeaseLost);
  expect((await world.sync("web"))?.observed).toBeUndefined();
});

describe("a check that the invocation's deadline cuts short", () => {
  const silent = asked({ code: "ERR_CONNECT_TIMEOUT" });

  test("the check leaves an attempt in progress as Applying", async () => {
    const { world, work } = await begin(silent, 295_000);
    await work();
    expect(await observed(world)).toMatchObject({ phase: "Applying", reason: "OutOfTime" });
    const { status } = (await world.table.get(keys.cluster("c1"))) ?? {};
    expect(status?.lastSeenAt).toBeUndefined();
  });

  test("the check has the cluster's error as its finding when the cluster answered", async () => {
    const { world, work } = await begin(asked({ status: 503 }), 295_000);
    await work();
    expect(await observed(world)).toMatchObject({ phase: "Retrying", reason: "ServiceUnavailable" });
  });

  const applied = { renderDigest: "", revision: "main@sha1:1", attempt: 1, at };
  test.each<[Phase, Phase]>([
    ["Ready", "Verifying"],
    ["Verifying", "Verifying"],
    ["Failed", "Failed"],
    ["Unreachable", "Unreachable"],
  ])("the check leaves a Sync that was %s as %s", async (before, after) => {
    const { world, work } = await begin(silent, 295_000);
    const row = await world.sync("web");
    if (row?.desired.renderDigest === undefined) throw new Error("nothing is assigned");
    const seen = {
      ...{ attempt: 1, phase: before, reason: "Before", message: "", startedAt: at, since: at, at, tries: 0 },
      ...{ objects: { total: 1, ready: 1, failed: 0, foreign: 0 }, problems: [], fence: 1, conditions: [] },
      applied: { ...applied, renderDigest: row.desired.renderDigest },
      clusterUid: "kube-system-1",
    };
    const cluster = await world.table.get(keys.cluster("c1"));
    if (cluster === undefined) throw new Error("there is no Cluster");
    const status = { uid: "kube-system-1", conditions: [] };
    await world.table.write([
      { put: { ...row, observed: seen, version: row.version + 1 } as SyncRow },
      { put: { ...cluster, status, version: cluster.version + 1 } as ClusterRow },
    ]);
    world.aheadMs += 700_000;
    await work();
    expect(await observed(world)).toMatchObject({ phase: after, reason: "OutOfTime" });
  });
});

test("a lack of this process's own resources is no finding, also when it is only the cause of an error", async () => {
  const cause = Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
  const { world, work } = await begin(
    new StarlingError("EKS was not asked", { code: "EksUnavailable", retry: "transient", cause }),
  );
  await expect(work()).rejects.toThrow("EKS was not asked");
  expect((await world.sync("web"))?.observed).toBeUndefined();
});
