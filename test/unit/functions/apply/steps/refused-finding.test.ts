import { expect, test } from "vitest";
import { otherCluster } from "#functions/apply/steps/identity-finding.ts";
import { problemOfObject } from "#functions/apply/steps/object-problem.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { pausedFinding, withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const context = { clusterUid: "mine", row: syncRowOf("c1") };
const remembered = { attempt: 9, fence: 30, token: "of-others" };

test.each<[string, Parameters<typeof refusedFinding>[1], object]>([
  [
    "is another one, whose uid somebody may accept",
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
    "is none",
    { reason: "IdentityMismatch", message: "this is another cluster than before" },
    {
      phase: "Unreachable",
      reason: "IdentityMismatch",
      message: "it has no namespace kube-system with a uid; check the endpoint",
    },
  ],
  [
    "remembers a later attempt",
    { reason: "ClusterAhead", message: "it was given attempt 9", clusterUid: "mine", remembered },
    { phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9", clusterUid: "mine", remembered },
  ],
  [
    "refuses for what it does not remember",
    { reason: "ClusterAhead", message: "it was given attempt 9" },
    { phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9" },
  ],
])("a cluster that refuses an attempt %s", (_what, refusal, expected) => {
  expect(refusedFinding(context, refusal)).toEqual(expected);
});

test("another cluster is told with what was expected and what was found", () => {
  expect(otherCluster(context, "theirs")).toMatchObject({ otherUid: "theirs" });
  expect(otherCluster(context, undefined)).not.toHaveProperty("otherUid");
});

test("what is withheld goes on when it may, and says what was done and what keeps the rest", () => {
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
])("an object that is not ready is told with %s", (_what, health) => {
  const reason = "reason" in health ? health.reason : health.status;
  expect(problemOfObject(id, health)).toEqual({ object: "Deployment shop/web", reason, message: "m" });
});

test("a look at what is parked that the end of the run cuts off takes nothing of what the cluster remembers", () => {
  const before = { attempt: 2, phase: "Failed", reason: "ClusterAhead", message: "it was given attempt 9", remembered };
  const found = {
    phase: "Applying",
    reason: "OutOfTime",
    message: "the time of this run is up; the next run continues",
  };
  const why = { reason: "Paused", message: "parked (ClusterAhead)" };
  expect(pausedFinding(found as never, why as never, before as never)).toMatchObject({
    phase: "Failed",
    reason: "ClusterAhead",
    message: "it was given attempt 9; parked (ClusterAhead)",
    remembered,
  });
});
