import { expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { podProblems } from "#shared/kube/health/pod-problems.ts";

const pod = (name: string, status: JsonObject): JsonObject => ({ metadata: { name }, status });
const waiting = (name: string, reason: string, message?: string): JsonObject => ({
  name,
  state: { waiting: { reason, ...(message ? { message } : {}) } },
});

/** Name, Pods, and their problems. */
const table: readonly (readonly [string, readonly JsonObject[], readonly string[]])[] = [
  [
    "a running Pod has no problem",
    [pod("a", { phase: "Running", containerStatuses: [{ name: "web", state: { running: {} } }] })],
    [],
  ],
  ["a starting Pod has no problem", [pod("a", { containerStatuses: [waiting("web", "ContainerCreating")] })], []],
  [
    "an image cannot be pulled",
    [pod("web-7d9f-x2k", { containerStatuses: [waiting("web", "ImagePullBackOff")] })],
    ["Pod web-7d9f-x2k: container web ImagePullBackOff"],
  ],
  [
    "a crash loop has the last exit code",
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
    "a problem of an init container hides later ones",
    [
      pod("a", {
        initContainerStatuses: [waiting("migrate", "ErrImagePull")],
        containerStatuses: [waiting("web", "PodInitializing")],
      }),
    ],
    ["Pod a: init container migrate ErrImagePull"],
  ],
  [
    "a Pod has no node",
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
    "the same problem of two Pods is reported once",
    [
      pod("a", { containerStatuses: [waiting("web", "ErrImagePull")] }),
      pod("b", { containerStatuses: [waiting("web", "ErrImagePull")] }),
    ],
    ["Pod a: container web ErrImagePull"],
  ],
  [
    "a Pod was evicted",
    [pod("a", { phase: "Failed", message: "The node was low on resource: memory" })],
    ["Pod a: failed: The node was low on resource: memory"],
  ],
];

test.each(table)("the problems of Pods: %s", (_name, pods, problems) => {
  expect(podProblems(pods)).toEqual(problems);
});

test("at most three problems are reported", () => {
  const pods = ["A", "B", "C", "D"].map((reason) => pod(reason, { containerStatuses: [waiting("web", reason)] }));
  expect(podProblems(pods)).toHaveLength(3);
});
