/** Schemas of request bodies. */
import * as z from "zod";
import { objectName } from "#functions/api/request/query-values.ts";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { uploadVersion } from "#shared/fleet/kinds/source.ts";
import { maxUploadBytes } from "#shared/fleet/sources/uploads.ts";

/** More documents could not be written in the time of a request. */
const maxDocuments = 1000;

const reason = boundedText(500).optional();
/** The address of a clone in CI often has one; a user alone stands in every SSH address. */
const login = /^https?:\/\/[^/\s]*@|\/\/[^/\s@]*:[^/\s]*@/i;
export const deleteQuery = z.object({ reason });

const guardHashText = "must be the hash of a withheld change: starling guard list prints it";
const guardHash = boundedText(64, guardHashText).regex(/^[0-9a-f]{16}$/, guardHashText);

export const applyBody = z.strictObject({
  documents: boundedList(z.unknown(), maxDocuments).min(1, "must have at least one document"),
  dryRun: z.boolean().default(false),
  confirm: z.boolean().default(false),
  guardHashes: boundedList(guardHash, 100).default([]),
  reason,
});

export const pushBody = z.strictObject({
  reason,
  version: uploadVersion,
  origin: boundedText(300)
    .regex(/^\S([^\p{Cc}]*\S)?$/u, "must be one line without space around it")
    .refine(
      (origin) => !login.test(origin),
      "must not contain a password or a token: leave out what stands before the @",
    )
    .optional(),
  sha256: boundedText(64).regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits in lower case"),
  bytes: z
    .number()
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .max(maxUploadBytes, `must be at most ${maxUploadBytes}: push fewer or smaller files`),
  upload: boundedText(64)
    .regex(/^[\w-]+$/, "must be the place that the first answer gave")
    .optional(),
});

export const acceptBody = z.strictObject({
  reason,
  uid: boundedText(64).min(1),
  confirm: z.boolean().default(false),
});

const objectNamed = (what: string) => boundedText(63).regex(objectName, `must be the name of ${what}`);
const cluster = objectNamed("a cluster");

export const pruneBody = z.strictObject({
  reason,
  cluster: cluster.exactOptional(),
  /** As many objects as a row names. */
  uids: boundedList(boundedText(253).min(1), 20).min(1, "must name at least one object"),
  confirm: z.boolean().default(false),
});

/** A request has no time for more Syncs. */
const maxRecovered = 1000;
const name = boundedText(300).min(1);
const number = z.number().int().nonnegative();

export const recoverBody = z.strictObject({
  reason,
  syncs: boundedList(
    z.strictObject({ namespace: name, name, attempt: number, token: boundedText(64).optional() }),
    maxRecovered,
  ).min(1, "must have at least one Sync"),
  sources: boundedList(z.strictObject({ namespace: name, name, number }), maxRecovered).default([]),
  from: boundedText(300).optional(),
  all: z.boolean().default(false),
});

/** Times of one form are compared as texts. */
const timeInUtc = z.iso
  .datetime({ error: "must be a time in UTC, such as 2026-11-22T18:00:00Z" })
  .transform((text) => new Date(text).toISOString());
const rolloutText = "must be the number of a rollout: starling rollout list shows them";
const rolloutNumber = z
  .number({ error: ({ input }) => (input === undefined ? rolloutText : undefined) })
  .int()
  .min(1, rolloutText);
const whyText = "must say why, for whoever finds it";
/** People who find a rollout that stands still want to know why. */
const statedReason = boundedText(500, whyText).min(1, whyText);

const labelSelector = boundedText(1000).min(1, "must be a label selector; leave it out for every cluster");
const planText = "must be the hash of a plan: starling rollout status shows it";
const plan = boundedText(64, planText).regex(/^[0-9a-f]{32}$/, planText);
const stageText = "must be the name of a stage";
const stage = boundedText(300, stageText).min(1, stageText);

/** A verb about one cluster, or about those that a selector matches. */
const namedClusters = z.strictObject({
  reason: statedReason,
  cluster: cluster.optional(),
  clusters: labelSelector.optional(),
});

const rollback = z.strictObject({
  reason: statedReason,
  to: z
    .union(
      [rolloutNumber, boundedText(300).min(1)],
      "must be the number or the revision of a rollout: starling rollout list shows them",
    )
    .optional(),
  dryRun: z.boolean().default(false),
});

/** The bodies of the verbs about the rollouts of a group or Sync. */
export const rolloutBodies = {
  hold: z.strictObject({ reason: statedReason, until: timeInUtc.optional() }),
  exempt: z.strictObject({
    reason: statedReason,
    until: timeInUtc,
    windows: boundedList(objectNamed("a Window"), 20)
      .min(1, "must name at least one Window; leave it out for all")
      .optional(),
  }),
  unexempt: z.strictObject({ reason }),
  release: z.strictObject({ reason, to: rolloutNumber.optional() }),
  approve: z.strictObject({
    reason: statedReason,
    stage,
    plan,
    /** The principal of a check may also reject; an approval of people is only given. */
    answer: z.enum(["approved", "rejected"], 'must be "approved" or "rejected"').optional(),
  }),
  promote: z.strictObject({ reason: statedReason, stage, rollout: rolloutNumber, snapshot: number }),
  rollback,
  /** It also deletes the templates that later rollouts added. */
  "rollback-deleting": rollback,
  reject: z.strictObject({ reason: statedReason, rollout: rolloutNumber }),
  unreject: z.strictObject({ reason: statedReason, rollout: rolloutNumber }),
  skip: namedClusters.refine((body) => (body.cluster === undefined) !== (body.clusters === undefined), {
    path: ["cluster"],
    message: "must name the cluster to skip, or clusters must select some by their labels: one of both",
  }),
  retry: namedClusters.refine((body) => body.cluster === undefined || body.clusters === undefined, {
    path: ["clusters"],
    message: "must be left out, because cluster names one",
  }),
};

export const guardBody = z.strictObject({ reason: statedReason, hash: guardHash });

export const freezeBody = z.strictObject({
  reason: statedReason,
  clusters: labelSelector.optional(),
  until: timeInUtc.optional(),
});

export const cordonBody = z.strictObject({ reason: statedReason, until: timeInUtc.optional() });
export const uncordonBody = z.strictObject({ reason });

export const triggerBody = z.strictObject({ reason });

export const operateBody = z.strictObject({
  reason,
  withSource: z.boolean().default(false),
  /** Only a suspend has an end. */
  until: timeInUtc.optional(),
});

/** More URLs could not be signed in the time of a request. */
const maxLinks = 100;
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be a digest as sha256:<64 hex>");

/** Each rendering comes with a Sync that refers to it: no other is signed, and no fleet is searched for it. */
export const renderingsBody = z.strictObject({
  renderings: boundedList(z.strictObject({ digest, cluster, sync: name }), maxLinks),
});

export const artifactsBody = z.strictObject({ artifacts: boundedList(digest, maxLinks) });
