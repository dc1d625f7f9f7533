import { expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { podProblems } from "#shared/kube/health/pod-problems.ts";

const pod = (name: string, status: JsonObject): JsonObject => ({ metadata: { name }, status });
const waiting = (name: string, reason: string, message?: string): JsonObject => ({
  name,
  state: { waiting: { reason, ...(message ? { message } : {}) } },
});

/** Legend: name, pods, troubles. */
const table: readonly (readonly [string, readonly JsonObject[], readonly string[]])[] = [
  [
    "nothing to say",
    [pod("a", { phase: "Running", containerStatuses: [{ name: "web", state: { running: {} } }] })],
    [],
  ],
  ["starting is no trouble", [pod("a", { containerStatuses: [waiting("web", "ContainerCreating")] })], []],
  [
    "an image that cannot be pulled",
    [pod("web-7d9f-x2k", { containerStatuses: [waiting("web", "ImagePullBackOff")] })],
    ["Pod web-7d9f-x2k: container web ImagePullBackOff"],
  ],
  [
    "a crash loop says how it ended",
    [
      pod("a", {
        containerStatuses: [
          {
            name: "web",
            state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 5m0s" } },
            lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
          },
        ],
      }),
    ],
    ["Pod a: container web CrashLoopBackOff: last exit code 137 (OOMKilled)"],
  ],
  [
    "init containers come first",
    [
      pod("a", {
        initContainerStatuses: [waiting("migrate", "ErrImagePull")],
        containerStatuses: [waiting("web", "PodInitializing")],
      }),
    ],
    ["Pod a: init container migrate ErrImagePull"],
  ],
  [
    "no node",
    [
      pod("a", {
        conditions: [
          { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are\n available" },
        ],
      }),
    ],
    ["Pod a: Unschedulable: 0/3 nodes are available"],
  ],
  [
    "the same trouble of two Pods is said once",
    [
      pod("a", { containerStatuses: [waiting("web", "ErrImagePull")] }),
      pod("b", { containerStatuses: [waiting("web", "ErrImagePull")] }),
    ],
    ["Pod a: container web ErrImagePull"],
  ],
  [
    "evicted",
    [pod("a", { phase: "Failed", message: "The node was low on resource: memory" })],
    ["Pod a: failed: The node was low on resource: memory"],
  ],
];

test.each(table)("%s", (_name, pods, problems) => {
  expect(podProblems(pods)).toEqual(problems);
});

test("says at most three things", () => {
  const pods = ["A", "B", "C", "D"].map((reason) => pod(reason, { containerStatuses: [waiting("web", reason)] }));
  expect(podProblems(pods)).toHaveLength(3);
});
