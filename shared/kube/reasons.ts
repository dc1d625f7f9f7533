import { errorCodes } from "#shared/base/error-codes.ts";

/**
 * The words that stand as the `reason` of a condition, a failure, a finding or an event, where they are ours: docs/reasons.md says
 * of each what it means and what to do, in this order. A state that is given as a reason is in none of these lists, and
 * in docs/seeing.md.
 */
export const reasons = [
  // One object of a Sync, which could not be applied, run or deleted.
  "Invalid",
  "InvalidName",
  "NoNamespace",
  "NoMatch",
  "KindUnavailable",
  "ServiceUnavailable",
  "DuplicateObject",
  "SetInvalid",
  "DependencyFailed",
  "DefinitionNotEstablished",
  "ForeignOwner",
  "Terminating",
  "HookExists",
  "HookFailed",
  "HookLost",
  "AnswerMalformed",
  "AnswerTooLarge",
  "AnswersTooLarge",
  "ListTooLong",
  "Protected",
  "NamespaceNotEmpty",
  "DefinitionInUse",
  "DefinitionNotServed",
  // One object that was applied, and is not as it should be.
  "NotFound",
  "Missing",
  "Replaced",
  "Changed",
  "Drifted",
  "NotNamed",
  "NotChecked",
  "NotSeen",
  "Unreadable",
  "LatestGenerationNotObserved",
  "NoStatus",
  "NoGeneration",
  "NoObservedGeneration",
  "NoDesiredNumber",
  "LessReplicas",
  "LessUpdated",
  "LessAvailable",
  "LessReady",
  "LessCurrent",
  "LessLabelled",
  "ExtraPods",
  "PartitionRollout",
  "RevisionMismatch",
  "ReplicaFailure",
  "ReplicaSetNotAvailable",
  "DeploymentNotAvailable",
  "PodNotObserved",
  "PodPending",
  "PodNotScheduled",
  "PodUnschedulable",
  "PodRunning",
  "PodRunningNotReady",
  "PodFailed",
  "PodsFailed",
  "ContainerCrashLooping",
  "JobNotStarted",
  "JobInProgress",
  "JobSuspended",
  "JobFailed",
  "JobLost",
  "NoIPAssigned",
  "NotBound",
  "Installing",
  // A Sync on its cluster.
  "NotReady",
  "ObjectsFailed",
  "ObjectsMissing",
  "ApplyFailed",
  "OrderInvalid",
  "StepNotReady",
  "Failing",
  "DeletingHooks",
  "HookNotDeleted",
  "OutOfTime",
  "Pruning",
  "PruneFailed",
  "DeleteFailed",
  "Deleted",
  "DeletionFailed",
  "UnrecordedMembers",
  "DriftCorrectionFailed",
  "CorrectionsUndone",
  "DriftDetected",
  "DriftCorrected",
  "InSync",
  "NotApplied",
  "NotCompared",
  "Settled",
  "InventoryLost",
  "InventoryRebuilt",
  "RenderingLost",
  "ClusterAhead",
  "ParentMissing",
  "Paused",
  "Withdrawn",
  "WorkerDied",
  "AnswersAgain",
  // A cluster.
  "Answers",
  "Unauthorized",
  "IdentityMismatch",
  // A group, and what goes through its stages.
  "AllClustersReady",
  "NothingRolledOut",
  "SourceNotFound",
  "SourceNotReady",
  "RowTooLarge",
  "NewerRow",
  "NoProgress",
  "RenderFailed",
  "DeadlineExceeded",
  "TooManyFailures",
  "StageRemoved",
  "Newer",
  "RolloutUpdating",
  "RolloutHalted",
  "RolloutNothingVerified",
  "RolloutTooManyUnreachable",
  "RolloutPassed",
  "RolloutSuperseded",
  // A Source.
  "ArtifactLost",
  // A ClusterDiscovery.
  "Discovered",
  "Incomplete",
  "ClustersRefused",
  "NameCollision",
  "NameInvalid",
  "ParametersUnseen",
  "FoundByAnother",
  "RegisteredByHand",
  "ValueNotAllowed",
  "SecureString",
  "NoName",
  "TooLarge",
  "MaxPerDay",
  "Conflict",
  // An error on the way, by its code; and a request that nobody answered.
  "NoAnswer",
  ...errorCodes,
] as const;

export type Reason = (typeof reasons)[number];

/** Some of them; one that is none of them does not compile. */
export type Among<Words extends Reason> = Words;

declare const told: unique symbol;

/** A word as a server, a controller or a row says it: whichever. */
export type ReportedReason = string & { readonly [told]: true };

export type AnyReason = Reason | ReportedReason;

/** What is not ours to choose. A word of ours stands as it is: it has to be one of `reasons`. */
export function reportedReason(text: string): ReportedReason {
  return text as ReportedReason;
}
