import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { counted } from "#shared/base/counted.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { alarmArn } from "#shared/fleet/alarm-arn.ts";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { guardSchema } from "#shared/fleet/kinds/guard-spec.ts";
import { namespacedMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { noRolePath, principalPattern } from "#shared/fleet/kinds/principal-pattern.ts";
import { clusterCountSchema, durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { syncSpec, syncTemplate } from "#shared/fleet/kinds/sync-template.ts";

/** Longest time between the begin of a gate and its end. */
const maxGateSeconds = 14 * 86_400;

const alarmDesired =
  "must be the ARN of a CloudWatch alarm, such as arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors";
const alarmGateSchema = z.strictObject({
  /** A metric alarm or a composite alarm in the account and region of the installation. */
  arn: boundedText(400, alarmDesired).regex(alarmArn, alarmDesired),
  /** Whether the gate passes when the alarm lacked data during the bake. */
  missing: z.enum(["fail", "pass"], 'must be "fail" or "pass"').default("fail"),
});
export type AlarmTerms = z.infer<typeof alarmGateSchema>;

const principalDesired = "must be the ARN of one role or user, such as arn:aws:iam::111122223333:role/robot";
const checkGateSchema = z.strictObject({
  /** The user or role that decides. */
  principal: boundedText(300, principalDesired)
    .regex(/^arn:[^:\s]+:iam::\d{12}:(role|user)\/[^*\s]+$/, principalDesired)
    .regex(...noRolePath),
  /** How long it has for an answer. */
  expires: durationSchema({ minSeconds: 60, maxSeconds: maxGateSeconds }).default("1h"),
});

/** A gate after the clusters of a stage: its only key says which. */
const gateAfterSchema = z
  .strictObject({
    /** How long every cluster of the stage must stay within the budgets before the rollout passes. */
    bake: durationSchema({ minSeconds: 1, maxSeconds: maxGateSeconds }).optional(),
    /** An alarm that must not be in ALARM at any time of the bake. */
    alarm: alarmGateSchema.optional(),
    /** A program that answers, after the bake. */
    check: checkGateSchema.optional(),
  })
  .refine((gate) => Object.keys(gate).length === 1, "needs exactly one of bake, alarm or check");

const approvalSchema = z
  .strictObject({
    /** Patterns of the ARNs of users and roles that may approve; `*` stands for any part of a name. */
    by: boundedList(
      principalPattern,
      20,
      'must be a list of ARNs of roles or users, such as ["arn:aws:iam::111122223333:role/sre"]',
    ).min(1, "must name at least one role or user"),
    /** Number of different people who have to approve. */
    count: z
      .number()
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(10, "must be at most 10")
      .default(1),
    /** How long they have for it. */
    expires: durationSchema({ minSeconds: 60, maxSeconds: maxGateSeconds }).default("24h"),
  })
  .superRefine(({ by, count }, context) => {
    const users = new Set(by);
    const isExact = [...users].every((pattern) => pattern.includes(":user/") && !pattern.includes("*"));
    if (isExact && users.size > 0 && users.size < count)
      context.addIssue({
        code: "custom",
        path: ["count"],
        message: `must be at most ${users.size}, because by names ${counted(users.size, "user")}`,
      });
  });

/** A gate before the clusters of a stage. */
const gateBeforeSchema = z.strictObject({ approval: approvalSchema });

const stageSchema = z.strictObject({
  name: nameSchema,
  /** When absent, the stage takes every cluster that no earlier stage took. */
  clusters: clusterSelectionSchema.optional(),
  /** Clusters of this stage that may change at once; never more than the group's limit. */
  maxConcurrent: clusterCountSchema.optional(),
  /** Whether a rollout passes the first stage without verification when the stage has no cluster. False by default. */
  optional: z.boolean().optional(),
  /** The gates between the stage before and the first cluster of this one. */
  before: boundedList(gateBeforeSchema, 1).min(1, "must have at least one gate; leave it out for none").optional(),
  /** The gates between the last cluster of the stage and the next stage. */
  after: boundedList(gateAfterSchema, 7)
    .min(1, "must have at least one gate; leave it out for none")
    .refine((gates) => gates.filter(({ bake }) => bake !== undefined).length <= 1, "has two bakes; keep one of them")
    .refine((gates) => gates.filter(({ check }) => check !== undefined).length <= 1, "has two checks; keep one of them")
    .refine(
      (gates) => gates.every(({ alarm }) => alarm === undefined) || gates.some(({ bake }) => bake !== undefined),
      "has an alarm without a bake, during which it is watched; add a bake, such as { bake: 1h }",
    )
    .refine((gates) => {
      const arns = gates.flatMap(({ alarm }) => alarm?.arn ?? []);
      return new Set(arns).size === arns.length;
    }, "has the same alarm twice; keep one of them")
    .optional(),
});

function duplicateNames(items: readonly { readonly name: string }[]): boolean {
  return new Set(items.map((item) => item.name)).size !== items.length;
}

export const rolloutStrategy = z.strictObject({
  /** Clusters of the group that may change at once; a percentage rounds down, to at least 1, and 500 is the maximum. */
  maxConcurrent: clusterCountSchema.default("10%"),
  /** Failed clusters that a rollout tolerates in one stage; one more halts it there. A percentage rounds down. */
  maxFailures: clusterCountSchema.default(0),
  /** Unreachable clusters that a stage leaves behind; they catch up when they answer. A percentage rounds up. */
  maxUnreachable: clusterCountSchema.default("10%"),
  /** How long a cluster may stay without progress, from when its worker begins until it is ready. */
  progressDeadline: durationSchema({ minSeconds: 5, maxSeconds: 86_400 }).default("10m"),
  /** Spreads the starts over this time, for groups that have one stage and change all clusters at once. */
  jitter: durationSchema({ minSeconds: 0, maxSeconds: 900 }).default("0s"),
  /** Whether a newer rollout follows while older ones are in progress in later stages, or only when these have ended. */
  supersede: z.enum(["pipeline", "finish"], 'must be "pipeline" or "finish"').default("pipeline"),
  /** Whether a rollout that fails in a stage stands still, or its clusters get the stage's current one again. */
  onFailure: z.enum(["halt", "rollback"], 'must be "halt" or "rollback"').default("halt"),
  stages: boundedList(stageSchema, 12)
    .min(1, "must have at least one stage; leave it out for a single stage of all clusters")
    .refine((stages) => !duplicateNames(stages), "has two stages with the same name")
    .refine(
      (stages) =>
        stages.filter((stage) => stage.clusters === undefined).length === 1 && stages.at(-1)?.clusters === undefined,
      "must end with exactly one catch-all stage, one without clusters, so that no cluster is left out in silence",
    )
    .default([{ name: "all" }]),
});
export type RolloutStrategy = z.infer<typeof rolloutStrategy>;

export const syncGroupSpec = z.strictObject({
  clusters: clusterSelectionSchema,
  templates: boundedList(syncTemplate, 20)
    .min(1, "must have at least one template")
    .refine((templates) => !duplicateNames(templates), "has two templates with the same name"),
  rollout: rolloutStrategy.prefault({}),
  /** When absent, the guard of the installation is in force. */
  guard: guardSchema.optional(),
});
export type SyncGroupSpec = z.infer<typeof syncGroupSpec>;

export const syncGroupDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("SyncGroup"),
  metadata: namespacedMetadata,
  spec: syncGroupSpec,
});

export const syncDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Sync"),
  metadata: namespacedMetadata,
  spec: syncSpec,
});
