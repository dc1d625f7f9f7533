import { expect, test } from "vitest";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { definiteFailure } from "#shared/kube/engine/object-failure.ts";
import type { PruneResult } from "#shared/kube/engine/prune-set.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

type Objects = Extract<PruneResult, { readonly objects: unknown }>["objects"];

const id = (name: string) => ({ group: "", kind: "ConfigMap", namespace: "shop", name });
const reasons = { waiting: "Pruning", failed: "PruneFailed" } as const;
const refused = definiteFailure({
  class: "forbidden",
  reason: reportedReason("Forbidden"),
  message: "it may not be deleted",
});
const busy = { ...refused, reason: reportedReason("Timeout"), message: "the server is busy", retryable: true };
const left: Objects = [
  { id: id("gone"), outcome: "deleted" },
  { id: id("going"), outcome: "terminating", message: "it waits for the finalizer x" },
  { id: id("later"), outcome: "waiting" },
];

function found(outcome: "waiting" | "failed", objects: Objects, timeWasUp = false): PruneResult {
  return { outcome, objects, timeWasUp, settled: [], held: [], notes: [] };
}

const problems = [
  { object: "ConfigMap shop/going", reason: "Terminating", message: "it waits for the finalizer x" },
  { object: "ConfigMap shop/later", reason: "Waiting", message: "" },
];

test.each<[string, PruneResult, object]>([
  [
    "the cluster refuses it",
    { outcome: "refused", reason: "ClusterAhead", message: "another worker was there" },
    { phase: "Failed", reason: "ClusterAhead", message: "another worker was there" },
  ],
  [
    "objects are still being deleted",
    found("waiting", left),
    { phase: "Applying", reason: "Pruning", message: "2 objects still to be deleted", problems },
  ],
  [
    "there was no time for all",
    found("waiting", left, true),
    {
      phase: "Applying",
      reason: "OutOfTime",
      message: "2 objects still to be deleted: the time of this run is up; the next run continues",
    },
  ],
  [
    "one object is refused for now",
    found("failed", [...left, { id: id("busy"), outcome: "failed", failure: busy }]),
    {
      phase: "Retrying",
      reason: "PruneFailed",
      message: "3 objects still to be deleted",
      problems: [...problems, { object: "ConfigMap shop/busy", reason: "Timeout", message: "the server is busy" }],
    },
  ],
  [
    "the server asks for fewer requests",
    found(
      "failed",
      [3, 30, 7].map((retryAfterSeconds, index) => ({
        id: id(`busy-${index}`),
        outcome: "failed" as const,
        failure: { ...busy, retryAfterSeconds },
      })),
    ),
    {
      phase: "Retrying",
      reason: "PruneFailed",
      message: "3 objects still to be deleted",
      problems: [0, 1, 2].map((index) => ({
        object: `ConfigMap shop/busy-${index}`,
        reason: "Timeout",
        message: "the server is busy",
      })),
      notBeforeSeconds: 30,
    },
  ],
  [
    "one object is refused for now, and there was no time for the others",
    found("failed", [{ id: id("busy"), outcome: "failed", failure: busy }], true),
    {
      phase: "Retrying",
      reason: "PruneFailed",
      message: "1 object still to be deleted",
      problems: [{ object: "ConfigMap shop/busy", reason: "Timeout", message: "the server is busy" }],
    },
  ],
  [
    "one object is refused for good",
    found("failed", [
      { id: id("busy"), outcome: "failed", failure: busy },
      { id: id("mine"), outcome: "failed", failure: refused },
    ]),
    {
      phase: "Failed",
      reason: "PruneFailed",
      message: "2 objects still to be deleted",
      problems: [
        { object: "ConfigMap shop/busy", reason: "Timeout", message: "the server is busy" },
        { object: "ConfigMap shop/mine", reason: "Forbidden", message: "it may not be deleted" },
      ],
    },
  ],
])("the finding of a deletion says that %s", (_what, pruned, expected) => {
  expect(pruneFinding(pruned, reasons)).toEqual(expected);
});
