import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { computeStatus, type HealthOptions } from "#shared/kube/health/compute-status.ts";

const now = new Date("2026-05-01T12:00:00Z");
const age = (seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString();

const foo = (rest: JsonObject): JsonObject => ({ apiVersion: "example.com/v1", kind: "Foo", ...rest });
const deployment = (spec: JsonObject, status: JsonObject, apiVersion = "apps/v1"): JsonObject => ({
  apiVersion,
  kind: "Deployment",
  metadata: { name: "web", generation: 1 },
  spec,
  status: { observedGeneration: 1, ...status },
});
const available = { type: "Available", status: "True", reason: "MinimumReplicasAvailable" };
const rolledOut = { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" };
const counts = (n: number) => ({ replicas: n, updatedReplicas: n, readyReplicas: n, availableReplicas: n });
const statefulSet = (spec: JsonObject, status?: JsonObject): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "db" },
  spec,
  ...(status ? { status } : {}),
});
const daemonSet = (metadata: JsonObject, status: JsonObject): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata,
  status,
});
const replicaSet = (status: JsonObject): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  spec: {},
  status,
});
const pod = (status: JsonObject, created = age(5)): JsonObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", creationTimestamp: created },
  status,
});
const job = (spec: JsonObject, status: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata,
  spec,
  status,
});
const crd = (status: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata,
  status,
});
const claim = (status?: JsonObject): JsonObject => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  ...(status ? { status } : {}),
});
const unschedulable = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" };
const crashLoop = { name: "web", state: { waiting: { reason: "CrashLoopBackOff" } } };

/** The test vectors of kstatus: name, object, status, reason, message; a reason of undefined must be absent. */
const vectors: readonly (readonly [string, JsonObject, string, string | undefined, string])[] = [
  [
    "K1 being deleted wins over Stalled",
    foo({
      metadata: { deletionTimestamp: age(1) },
      status: { conditions: [{ type: "Stalled", status: "True", reason: "R", message: "m" }] },
    }),
    "Terminating",
    undefined,
    "Resource scheduled for deletion",
  ],
  [
    "K2 an old observation wins over Stalled",
    foo({
      metadata: { generation: 2 },
      status: { observedGeneration: 1, conditions: [{ type: "Stalled", status: "True" }] },
    }),
    "InProgress",
    "LatestGenerationNotObserved",
    "Foo generation is 2, but latest observed generation is 1",
  ],
  [
    "K3 observed ahead of generation is in progress too",
    foo({ metadata: { generation: 1 }, status: { observedGeneration: 2 } }),
    "InProgress",
    "LatestGenerationNotObserved",
    "Foo generation is 1, but latest observed generation is 2",
  ],
  [
    "K4 observedGeneration is a string",
    foo({ metadata: { generation: 1 }, status: { observedGeneration: "1" } }),
    "Unknown",
    "Unreadable",
    "looking up status.observedGeneration from resource: expected an integer",
  ],
  [
    "K5 Stalled listed before Reconciling",
    foo({
      status: {
        conditions: [
          { type: "Stalled", status: "True", reason: "Bad", message: "no way" },
          { type: "Reconciling", status: "True", reason: "Busy", message: "on it" },
        ],
      },
    }),
    "Failed",
    "Bad",
    "no way",
  ],
  [
    "K6 Reconciling listed before Stalled",
    foo({
      status: {
        conditions: [
          { type: "Reconciling", status: "True", reason: "Busy", message: "on it" },
          { type: "Stalled", status: "True", reason: "Bad", message: "no way" },
        ],
      },
    }),
    "InProgress",
    "Busy",
    "on it",
  ],
  [
    "K7 false conditions and no Ready",
    foo({
      status: {
        conditions: [
          { type: "Reconciling", status: "False" },
          { type: "Stalled", status: "False" },
        ],
      },
    }),
    "Current",
    undefined,
    "Resource is current",
  ],
  [
    "K8 Ready",
    foo({ status: { conditions: [{ type: "Ready", status: "True" }] } }),
    "Current",
    undefined,
    "Resource is Ready",
  ],
  [
    "K9 Ready=False is in progress, never failed",
    foo({ status: { conditions: [{ type: "Ready", status: "False", reason: "Waiting", message: "for x" }] } }),
    "InProgress",
    "Waiting",
    "for x",
  ],
  [
    "K10 a Ready of an unknown status is ignored",
    foo({
      status: {
        conditions: [
          { type: "Ready", status: "Maybe" },
          { type: "Ready", status: "True" },
        ],
      },
    }),
    "Current",
    undefined,
    "Resource is Ready",
  ],
  ["K11 no status", foo({}), "Current", undefined, "Resource is current"],
  [
    "K12 conditions are not a list",
    foo({ status: { conditions: { a: 1 } } }),
    "Unknown",
    "Unreadable",
    "status.conditions must be a list",
  ],
  [
    "K13 Deployment without a deadline",
    deployment({}, { ...counts(1), conditions: [available] }),
    "Current",
    undefined,
    "Deployment is available. Replicas: 1",
  ],
  [
    "K14 Deployment still progressing",
    deployment(
      { progressDeadlineSeconds: 45 },
      {
        ...counts(1),
        conditions: [{ type: "Progressing", status: "True", reason: "ReplicaSetUpdated" }, available],
      },
    ),
    "InProgress",
    "ReplicaSetNotAvailable",
    "ReplicaSet not Available",
  ],
  [
    "K15 Deployment past its deadline",
    deployment(
      { progressDeadlineSeconds: 45 },
      { ...counts(1), conditions: [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }] },
    ),
    "Failed",
    "ProgressDeadlineExceeded",
    "Progress deadline exceeded",
  ],
  [
    "K16 Deployment with Pods left to terminate",
    deployment(
      { replicas: 2, progressDeadlineSeconds: 600 },
      { replicas: 3, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3, conditions: [rolledOut, available] },
    ),
    "InProgress",
    "ExtraPods",
    "Pending termination: 1",
  ],
  [
    "K17 Deployment with no replicas",
    deployment({ replicas: 0 }, { conditions: [rolledOut, available] }),
    "Current",
    undefined,
    "Deployment is available. Replicas: 0",
  ],
  ["K18 Deployment without status", deployment({}, {}), "InProgress", "LessReplicas", "Replicas: 0/1"],
  [
    "K19 extensions/v1beta1 Deployment",
    deployment({}, { ...counts(1), readyReplicas: 0, conditions: [available] }, "extensions/v1beta1"),
    "InProgress",
    "LessReady",
    "Ready: 0/1",
  ],
  [
    "K19b Deployment not updated",
    deployment({ replicas: 2 }, { ...counts(2), updatedReplicas: 1 }),
    "InProgress",
    "LessUpdated",
    "Updated: 1/2",
  ],
  [
    "K19c Deployment not available enough",
    deployment({ replicas: 2 }, { ...counts(2), availableReplicas: 1 }),
    "InProgress",
    "LessAvailable",
    "Available: 1/2",
  ],
  [
    "K19d Deployment without Available",
    deployment({}, { ...counts(1), conditions: [rolledOut] }),
    "InProgress",
    "DeploymentNotAvailable",
    "Deployment not Available",
  ],
  [
    "K20 StatefulSet OnDelete without status",
    statefulSet({ updateStrategy: { type: "OnDelete" } }),
    "Current",
    undefined,
    "StatefulSet is using the ondelete update strategy",
  ],
  [
    "K21 StatefulSet partition not reached",
    statefulSet(
      { replicas: 4, updateStrategy: { rollingUpdate: { partition: 2 } } },
      { replicas: 4, readyReplicas: 4, updatedReplicas: 1 },
    ),
    "InProgress",
    "PartitionRollout",
    "updated: 1/2",
  ],
  [
    "K22 StatefulSet partition reached",
    statefulSet(
      { replicas: 4, updateStrategy: { rollingUpdate: { partition: 2 } } },
      { replicas: 4, readyReplicas: 4, updatedReplicas: 2 },
    ),
    "Current",
    undefined,
    "Partition rollout complete. updated: 2",
  ],
  [
    "K23 StatefulSet revisions differ",
    statefulSet(
      { replicas: 1 },
      { replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: "a", updateRevision: "b" },
    ),
    "InProgress",
    "RevisionMismatch",
    "Waiting for updated revision to match current",
  ],
  [
    "K24 StatefulSet done",
    statefulSet(
      { replicas: 1 },
      { replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: "a", updateRevision: "a" },
    ),
    "Current",
    undefined,
    "All replicas scheduled as expected. Replicas: 1",
  ],
  [
    "K25 DaemonSet without observedGeneration",
    daemonSet({ generation: 1 }, {}),
    "InProgress",
    "NoObservedGeneration",
    "DaemonSet status.observedGeneration not found",
  ],
  [
    "K25b DaemonSet without generation",
    daemonSet({}, {}),
    "InProgress",
    "NoGeneration",
    "DaemonSet metadata.generation not found",
  ],
  [
    "K26 DaemonSet on no node",
    daemonSet({ generation: 1 }, { observedGeneration: 1, desiredNumberScheduled: 0 }),
    "Current",
    undefined,
    "All replicas scheduled as expected. Replicas: 0",
  ],
  [
    "K27 DaemonSet not updated",
    daemonSet(
      { generation: 1 },
      { observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1 },
    ),
    "InProgress",
    "LessUpdated",
    "Updated: 1/2",
  ],
  [
    "K28 ReplicaSet failure",
    replicaSet({
      ...counts(1),
      fullyLabeledReplicas: 1,
      conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate" }],
    }),
    "InProgress",
    "ReplicaFailure",
    "Replica Failure condition. Check Pods",
  ],
  ["K29 ReplicaSet not labelled", replicaSet(counts(1)), "InProgress", "LessLabelled", "Labelled: 0/1"],
  [
    "K30 Pod ready",
    pod({ phase: "Running", conditions: [{ type: "Ready", status: "True" }] }),
    "Current",
    undefined,
    "Pod is Ready",
  ],
  [
    "K31 Pod in a crash loop",
    pod({ phase: "Running", conditions: [{ type: "Ready", status: "False" }], containerStatuses: [crashLoop] }),
    "Failed",
    "ContainerCrashLooping",
    "Containers in CrashLoop state: web",
  ],
  [
    "K32 init containers are not checked",
    pod({ phase: "Pending", initContainerStatuses: [crashLoop] }),
    "InProgress",
    "PodPending",
    "Pod is in the Pending phase",
  ],
  [
    "K33 Pod unschedulable for less than 15 s",
    pod({ phase: "Pending", conditions: [unschedulable] }, age(14)),
    "InProgress",
    "PodNotScheduled",
    "Pod has not been scheduled",
  ],
  [
    "K33b Pod unschedulable for longer",
    pod({ phase: "Pending", conditions: [unschedulable] }, age(16)),
    "Failed",
    "PodUnschedulable",
    "Pod could not be scheduled",
  ],
  [
    "K33c a failed Pod is Current",
    pod({ phase: "Failed" }),
    "Current",
    undefined,
    "Pod has completed, but not successfully",
  ],
  ["K33d Pod of an unknown phase", pod({ phase: "Unknown" }), "Unknown", "Unreadable", "unknown phase Unknown"],
  ["K33e Pod without phase", pod({}), "InProgress", "PodNotObserved", "Pod phase not available"],
  ["K34 PVC pending", claim({ phase: "Pending" }), "InProgress", "NotBound", "PVC is not Bound. phase: Pending"],
  ["K34b PVC lost", claim({ phase: "Lost" }), "InProgress", "NotBound", "PVC is not Bound. phase: Lost"],
  ["K34c PVC bound", claim({ phase: "Bound" }), "Current", undefined, "PVC is Bound"],
  ["K34d PVC without status", claim(), "InProgress", "NotBound", "PVC is not Bound. phase: unknown"],
  [
    "K35 LoadBalancer without an IP",
    { apiVersion: "v1", kind: "Service", spec: { type: "LoadBalancer" } },
    "InProgress",
    "NoIPAssigned",
    "ClusterIP not set. Service type: LoadBalancer",
  ],
  [
    "K35b LoadBalancer with an IP",
    { apiVersion: "v1", kind: "Service", spec: { type: "LoadBalancer", clusterIP: "10.0.0.1" } },
    "Current",
    undefined,
    "Service is ready",
  ],
  ["K36 headless Service", { apiVersion: "v1", kind: "Service" }, "Current", undefined, "Service is ready"],
  [
    "K37 Job started",
    job({}, { startTime: age(9), active: 1 }),
    "InProgress",
    "JobInProgress",
    "Job in progress. success:0, active: 1, failed: 0",
  ],
  ["K38 Job not started", job({ parallelism: 2 }, {}), "InProgress", "JobNotStarted", "Job not started. active: 0/2"],
  [
    "K39 Job complete",
    job({ completions: 3 }, { succeeded: 3, conditions: [{ type: "Complete", status: "True" }] }),
    "Current",
    undefined,
    "Job Completed. succeeded: 3/3",
  ],
  [
    "K39b Job failed",
    job({}, { failed: 2, conditions: [{ type: "Failed", status: "True", reason: "BackoffLimitExceeded" }] }),
    "Failed",
    "JobFailed",
    "Job Failed. failed: 2/1",
  ],
  ["K39c Job suspended", job({ suspend: true }, {}), "Current", undefined, "Job is suspended"],
  [
    "K39d Job being deleted",
    job({}, { conditions: [{ type: "Complete", status: "True" }] }, { deletionTimestamp: age(1) }),
    "Terminating",
    undefined,
    "Resource scheduled for deletion",
  ],
  ["K40 CRD without conditions", crd({}), "InProgress", "Installing", "Install in progress"],
  [
    "K41 CRD names not accepted",
    crd({ conditions: [{ type: "NamesAccepted", status: "False", reason: "KindConflict", message: "taken" }] }),
    "Failed",
    "KindConflict",
    "taken",
  ],
  [
    "K42 CRD installing",
    crd({ conditions: [{ type: "Established", status: "False", reason: "Installing" }] }),
    "InProgress",
    "Installing",
    "Install in progress",
  ],
  [
    "K43 CRD established without observedGeneration",
    crd({ conditions: [{ type: "Established", status: "True" }] }, { generation: 2 }),
    "Current",
    undefined,
    "CRD is established",
  ],
  [
    "K43b the first CRD condition decides",
    crd({
      conditions: [
        { type: "Established", status: "True" },
        { type: "NamesAccepted", status: "False" },
      ],
    }),
    "Current",
    undefined,
    "CRD is established",
  ],
  [
    "K44 PDB without status",
    { apiVersion: "policy/v1", kind: "PodDisruptionBudget" },
    "Current",
    undefined,
    "AllowedDisruptions has been computed.",
  ],
  [
    "K45 CronJob",
    { apiVersion: "batch/v1", kind: "CronJob", status: { active: [{}] } },
    "Current",
    undefined,
    "Resource is always ready",
  ],
  [
    "a custom Deployment of another group has no Deployment rule",
    { apiVersion: "example.com/v1", kind: "Deployment", spec: { replicas: 3 } },
    "Current",
    undefined,
    "Resource is current",
  ],
];

describe("computeStatus", () => {
  test.each(vectors)("kstatus: %s", (_name, object, status, reason, message) => {
    const health = computeStatus(object, { now });
    expect(health).toEqual(reason === undefined ? { status, message } : { status, reason, message });
  });

  /** Cases that kstatus leaves open: name, object, options, status. */
  const closed: readonly (readonly [string, JsonObject, Omit<HealthOptions, "now">, string])[] = [
    [
      "an object older than what was applied",
      foo({ metadata: { generation: 3 } }),
      { minimumGeneration: 4 },
      "InProgress",
    ],
    ["an object as old as what was applied", foo({ metadata: { generation: 4 } }), { minimumGeneration: 4 }, "Current"],
    [
      "a Ready about an older generation",
      foo({
        metadata: { generation: 4 },
        status: { conditions: [{ type: "Ready", status: "True", observedGeneration: 3 }] },
      }),
      { minimumGeneration: 4 },
      "InProgress",
    ],
    [
      "a new custom resource without status",
      foo({ metadata: { creationTimestamp: age(3) } }),
      { expectsStatus: true },
      "InProgress",
    ],
    [
      "an old custom resource without status",
      foo({ metadata: { creationTimestamp: age(30) } }),
      { expectsStatus: true },
      "Current",
    ],
    [
      "a Pod that waits for a node",
      pod({ phase: "Pending", conditions: [unschedulable] }, age(200)),
      { unschedulableGraceSeconds: 600 },
      "InProgress",
    ],
  ];
  test.each(closed)("a gap of kstatus is closed: %s", (_name, object, options, status) => {
    expect(computeStatus(object, { now, ...options }).status).toBe(status);
  });
});
