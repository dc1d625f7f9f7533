import { describe, expect, test } from "vitest";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { seenCluster } from "#shared/fleet/sync/seen-cluster.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

const now = new Date("2026-11-21T08:00:00.000Z");
const ready = { phase: "Ready", reason: "Ready", message: "" } as const;
const away = { phase: "Unreachable", reason: "Unauthorized", message: "401" } as const;

function clusterWith(status: ClusterRow["status"]): ClusterRow {
  return {
    pk: "CL#a",
    sk: "META",
    type: "Cluster",
    schema: 1,
    version: 3,
    uid: "u",
    name: "a",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: now.toISOString(),
    spec: { endpoint: { server: "https://a.example", token: { secret: "starling/clusters/a" } } },
    operations: {},
    status,
  };
}

describe("the status of a cluster after a check of a Sync", () => {
  test("the first answer notes uid and version", () => {
    const contact = { uid: "kube-system-uid", version: "v1.36.2" };
    const seen = seenCluster(clusterWith({ conditions: [] }), { result: ready, contact, now });
    expect(seen?.version).toBe(4);
    expect(seen?.status).toEqual({
      uid: "kube-system-uid",
      version: "v1.36.2",
      lastSeenAt: now.toISOString(),
      conditions: [{ type: "Reachable", status: "True", reason: "Answers", message: "", since: now.toISOString() }],
    });
  });

  test("the same answer soon after changes nothing, and six hours later the status is updated", () => {
    const contact = { uid: "kube-system-uid" };
    const first = seenCluster(clusterWith({ conditions: [] }), { result: ready, contact, now });
    if (first === undefined) throw new Error("the first answer was not noted");
    const soon = new Date(now.getTime() + 21_599_000);
    const late = new Date(now.getTime() + 21_601_000);
    expect(seenCluster(first, { result: ready, contact, now: soon })).toBeUndefined();
    expect(seenCluster(first, { result: ready, contact, now: late })?.status.lastSeenAt).toBe(late.toISOString());
    // While a Sync is not ready, the status is updated after five minutes.
    const waiting = { ...ready, phase: "Verifying" as const };
    const seenAfter = (seconds: number) => ({
      result: waiting,
      contact,
      now: new Date(now.getTime() + seconds * 1000),
    });
    expect(seenCluster(first, seenAfter(299))).toBeUndefined();
    expect(seenCluster(first, seenAfter(301))?.status.lastSeenAt).toBe(seenAfter(301).now.toISOString());
  });

  test("an address from EKS is stored once, after the cluster has answered there", () => {
    const address = {
      arn: "arn:aws:eks:eu-west-1:111122223333:cluster/a",
      server: "https://a.eks.example",
      caData: "QQ==",
      askedAt: "2026-11-21T07:59:59.000Z",
    };
    const answered = seenCluster(clusterWith({ conditions: [] }), { result: ready, contact: { uid: "u" }, now });
    if (answered === undefined) throw new Error("the first answer was not noted");
    const noted = seenCluster(answered, { result: ready, contact: { uid: "u", address }, now });
    expect(noted?.status).toEqual({ ...answered.status, address });
    if (noted === undefined) throw new Error("the address was not noted");
    expect(seenCluster(noted, { result: ready, contact: { uid: "u" }, now })).toBeUndefined();
    expect(seenCluster(noted, { result: away, now })?.status.address).toEqual(address);
    const moved = { ...address, server: "https://b.eks.example", askedAt: "2026-11-21T08:00:00.000Z" };
    expect(seenCluster(noted, { result: ready, contact: { address: moved }, now })?.status.address).toEqual(moved);
  });

  test("a failure of Starling's own, before the cluster was asked, does not change the cluster's status", () => {
    const missing = { phase: "Retrying", reason: reportedReason("SecretNotFound"), message: "" } as const;
    expect(seenCluster(clusterWith({ conditions: [] }), { result: missing, now })).toBeUndefined();
  });

  test("the uid of another cluster is shown until the right cluster has answered", () => {
    const known = clusterWith({ uid: "old", conditions: [] });
    const other = (otherUid: string) => ({
      phase: "Unreachable" as const,
      reason: "IdentityMismatch" as const,
      message: "another",
      otherUid,
    });
    const seen = seenCluster(known, { result: other("new"), now });
    expect(seen?.status).toMatchObject({ uid: "old", mismatch: "new", conditions: [{ status: "False" }] });
    if (seen === undefined) throw new Error("the stranger was not noted");
    expect(seenCluster(seen, { result: other("new"), now })).toBeUndefined();
    expect(seenCluster(seen, { result: other("third"), now })?.status.mismatch).toBe("third");
    // A check that read no uid proves nothing.
    expect(seenCluster(seen, { result: ready, contact: {}, now })).toBeUndefined();
    const back = seenCluster(seen, { result: ready, contact: { uid: "old" }, now });
    expect(back?.status).toMatchObject({ uid: "old", conditions: [{ status: "True" }] });
    expect(back?.status).not.toHaveProperty("mismatch");
    const accepted = { ...seen, operations: { accepted: { by: "ana", at: "", number: 1, uid: "new" } } };
    expect(seenCluster(accepted, { result: ready, contact: { uid: "new" }, now })?.status).toMatchObject({
      uid: "new",
    });
  });

  test("a refused token is stored once with its reason, and the known facts stay", () => {
    const known = clusterWith({
      uid: "kube-system-uid",
      version: "v1.36.2",
      lastSeenAt: now.toISOString(),
      conditions: [],
    });
    const seen = seenCluster(known, { result: away, now });
    expect(seen?.status).toMatchObject({
      uid: "kube-system-uid",
      version: "v1.36.2",
      conditions: [{ status: "False", reason: "Unauthorized", message: "401" }],
    });
    if (seen === undefined) throw new Error("the refusal was not noted");
    expect(seenCluster(seen, { result: away, now: new Date(now.getTime() + 3_600_000) })).toBeUndefined();
  });
});
