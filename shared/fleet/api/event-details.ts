/**
 * The details of events for programs outside. docs/events has their JSON Schemas, and test/unit/docs/schemas.test.ts writes them.
 * A program that reads events must not mind members that it does not know.
 */
import * as z from "zod";

const time = (description: string) => z.string().meta({ format: "date-time", description });

const artifact = z
  .object({
    revision: z.string().describe("The revision, such as main@sha1:4be8a903…"),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .describe("Digest of the files; artifacts/HEX.tar.gz in the bucket has them"),
  })
  .describe("A revision and its artifact");

const availability = z.object({
  availability: z
    .enum(["available", "unavailable"])
    .describe("available: the condition Ready is True; unavailable: it is False"),
  reason: z.string().min(1).describe("Reason of the condition Ready, of those in docs/reasons.md"),
  since: time("Since when"),
});

/** What all events have; each kind of object has the same. */
const envelope = z.object({
  id: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe("The same in every delivery of the event, unlike the id of EventBridge"),
  sequence: z
    .int()
    .min(1)
    .describe("Grows by one with every event of the object: it orders them, and a gap shows a lost one"),
  time: time("When it happened"),
  installation: z.string().min(1).describe("NAME.ACCOUNT.REGION of the installation"),
  namespace: z.string().min(1),
  name: z.string().min(1).describe("Name of the object"),
  uid: z.string().min(1).describe("Another one when the object was deleted and made again"),
});

export const sourceRevisionDetail = envelope
  .extend(artifact.shape)
  .extend({
    origin: z
      .string()
      .optional()
      .describe("Address of the upstream without its query, or what a push gave as the origin of its content"),
    previous: artifact.optional().describe("The artifact before; absent for the first one"),
  })
  .describe(
    "A Source has another revision, whose artifact is stored. Groups that use the Source plan a rollout if it changes them.",
  );

export const sourceAvailabilityDetail = envelope
  .extend(availability.shape)
  .extend({
    message: z.string().describe("For people"),
    artifact: artifact
      .optional()
      .describe("The last good artifact, which stays in use; absent when there was none yet"),
    staleSince: time(
      "When the upstream was last known to have nothing newer than the artifact; absent when it is available or has no artifact",
    ).optional(),
    previous: availability.optional().describe("What was before; absent when nothing was known"),
  })
  .describe("A Source can be resolved again, or cannot be resolved any more.");

export type SourceRevisionDetail = z.infer<typeof sourceRevisionDetail>;
export type SourceAvailabilityDetail = z.infer<typeof sourceAvailabilityDetail>;
