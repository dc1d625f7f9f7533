/**
 * What travels between the functions, in flow order. A message carries keys, never facts: losing, repeating, delaying
 * or reordering it changes latency, not the result.
 */
import * as z from "zod";

const objectRef = z.strictObject({ namespace: z.string(), name: z.string() });
const sourceRef = objectRef.extend({ revision: z.string().optional() });

/** What the planner plans for: a SyncGroup, or a Sync that a user wrote. */
export const ownerRef = z.strictObject({
  namespace: z.string(),
  kind: z.enum(["SyncGroup", "Sync"]),
  name: z.string(),
});
export type OwnerRef = z.infer<typeof ownerRef>;

/**
 * api, webhook, render, tick -> resolve: look at the Source's reference; `lost` is an artifact that was not to be read, of
 * that `revision`.
 */
export const resolveMessage = z.strictObject({
  to: z.literal("resolve"),
  source: objectRef,
  lost: z.string().optional(),
  revision: z.string().optional(),
});

/**
 * api, resolve, render, report, tick -> rollout (FIFO, group = subject): something about the subject may have changed, and on
 * these clusters; left out, on any. `after`: a look at any, which was not through in one call, goes on behind this cluster.
 */
export const rolloutMessage = z.strictObject({
  to: z.literal("rollout"),
  owner: ownerRef,
  clusters: z.array(z.string()).optional(),
  after: z.string().optional(),
});

/**
 * rollout, apply, tick -> render: this distinct input waits for its rendering, or needs it still; `notify` is who asked,
 * `source` who may have its artifact, `besides` who may have others that it needs, and `lost` the rendering that was not
 * to be read.
 */
export const renderMessage = z.strictObject({
  to: z.literal("render"),
  input: z.string(),
  notify: ownerRef.optional(),
  source: sourceRef.optional(),
  besides: z.array(sourceRef.extend({ besides: z.string() })).optional(),
  lost: z.string().optional(),
});

/** api, tick -> discover: look at the accounts of the ClusterDiscovery. */
const discoverMessage = z.strictObject({ to: z.literal("discover"), discovery: z.string() });

/** api, rollout, apply, tick -> apply: the cluster has work; with `check`, people ask whether it can be reached. */
const applyMessage = z.strictObject({
  to: z.literal("apply"),
  cluster: z.string(),
  check: z.literal(true).optional(),
});

/** apply -> apply: the cluster has work, and takes long for it. The worker that finds this out hands it on; nobody else sends one. */
const applySlowMessage = z.strictObject({ to: z.literal("applySlow"), cluster: z.string() });

/** rollout, apply -> report: the state of a Sync on a cluster, or of a content in one stage, changed. */
export const reportMessage = z.strictObject({
  to: z.literal("report"),
  about: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("Sync"), cluster: z.string(), namespace: z.string(), name: z.string() }),
    z.strictObject({
      kind: z.literal("Rollout"),
      owner: ownerRef,
      stageRun: z.strictObject({ rollout: z.number().int(), stage: z.string(), snapshot: z.number().int() }),
    }),
  ]),
});

export const message = z.discriminatedUnion("to", [
  resolveMessage,
  rolloutMessage,
  renderMessage,
  discoverMessage,
  applyMessage,
  applySlowMessage,
  reportMessage,
]);

export type ResolveMessage = z.infer<typeof resolveMessage>;
export type RolloutMessage = z.infer<typeof rolloutMessage>;
export type RenderMessage = z.infer<typeof renderMessage>;
export type ReportMessage = z.infer<typeof reportMessage>;
export type Message = z.infer<typeof message> & {
  /** Deliver no earlier than this, 0 to 900 s. Refused on the FIFO queue, which has none. */
  readonly delaySeconds?: number;
  /** Of what it follows from; left out, that of what is being done. It travels beside the message. */
  readonly correlationId?: string;
};
export type QueueName = Message["to"];

export function ownerKey(owner: OwnerRef): string {
  return `${owner.namespace}/${owner.kind}/${owner.name}`;
}

/** Each once: a second one finds nothing to do. */
export function distinctMessages(messages: readonly Message[]): readonly Message[] {
  return [...new Map(messages.map((each) => [JSON.stringify(each), each])).values()];
}
