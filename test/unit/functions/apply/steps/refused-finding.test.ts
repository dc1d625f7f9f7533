import { expect, test } from "vitest";
import { otherCluster } from "#functions/apply/steps/identity-finding.ts";
import { problemOfObject } from "#functions/apply/steps/object-reports.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { pausedFinding, withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const context = { clusterUid: "mine", row: syncRowOf("c1") };
const remembered = { attempt: 9, fence: 30, token: "of-others" };

test.each<[string, Parameters<typeof refusedFinding>[1], object]>([
  [
    "is another cluster has the uid that a person may accept",
    { reason: "IdentityMismatch", message: "this is another cluster than before", otherUid: "theirs" },
    {
      phase: "Unreachable",
      reason: "IdentityMismatch",
      message:
        "kube-system has the uid theirs, expected mine; if the cluster was rebuilt: starling cluster accept c1 --uid theirs; else check the endpoint",
      otherUid: "theirs",
    },
  ],
  [
    "has no identity says what is missing",
    { reason: "IdentityMismatch", message: "this is another cluster than before" },
    {
      phase: "Unreachable",
      reason: "IdentityMismatch",
      message: "it has no namespace kube-system with a uid; check the endpoint",
    },
  ],
  [
    "remembers a later attempt has what it remembers",
    { reason: "ClusterAhead", message: "it was given attempt 9", clusterUid: "mine", remembered },
    { phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9", clusterUid: "mine", remembered },
  ],
  [
    "refuses without a memory has the message only",
    { reason: "ClusterAhead", message: "it was given attempt 9" },
    { phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9" },
  ],
])("the finding of a cluster that %s", (_what, refusal, expected) => {
  expect(refusedFinding(context, refusal)).toEqual(expected);
});

test("the finding of another cluster has the uid that was found", () => {
  expect(otherCluster(context, "theirs")).toMatchObject({ otherUid: "theirs" });
  expect(otherCluster(context, undefined)).not.toHaveProperty("otherUid");
});

test("the finding of a withheld write says what was done, and what keeps the rest", () => {
  const why = { reason: "Frozen", message: "frozen by ana" } as const;
  expect(withheldFinding("everything was applied; nothing is pruned", why as never)).toEqual({
    phase: "Applying",
    reason: "Frozen",
    message: "everything was applied; nothing is pruned: frozen by ana",
    withheld: why,
  });
});

const id = { group: "apps", kind: "Deployment", namespace: "shop", name: "web" };
test.each([
  ["its own reason", { status: "Failed", reason: reportedReason("ProgressDeadlineExceeded"), message: "m" } as const],
  ["its status, where it gives none", { status: "InProgress", message: "m" } as const],
])("the problem of an object that is not ready has %s", (_what, health) => {
  const reason = "reason" in health ? health.reason : health.status;
  expect(problemOfObject(id, health)).toEqual({ object: "Deployment shop/web", reason, message: "m" });
});

test("a check of a paused Sync that the end of the run cuts off keeps what the cluster remembers", () => {
  const before = { attempt: 2, phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9", remembered };
  const found = {
    phase: "Applying",
    reason: "OutOfTime",
    message: "the time of this run is up; the next run continues",
  };
  const why = { reason: "Paused", message: "paused (ClusterAhead)" };
  expect(pausedFinding(found as never, why as never, before as never)).toMatchObject({
    phase: "Failed",
    reason: "ClusterAhead",
    message: "it was given attempt 9; paused (ClusterAhead)",
    remembered,
  });
});
