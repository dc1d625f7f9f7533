/**
 * The messages between the functions, in the order of their flow. A message contains keys and no facts: losing,
 * repeating, delaying or reordering it changes the latency, but not the result.
 */
import * as z from "zod";
import { polledTogether } from "#shared/fleet/sources/shared-upstream.ts";

const objectRef = z.strictObject({ namespace: z.string(), name: z.string() });
const sourceRef = objectRef.extend({ revision: z.string().optional() });

/** An owner: a SyncGroup, or a Sync that a user wrote. */
export const ownerRef = z.strictObject({
  namespace: z.string(),
  kind: z.enum(["SyncGroup", "Sync"]),
  name: z.string(),
});
export type OwnerRef = z.infer<typeof ownerRef>;

/**
 * api, webhook, render, tick, resolve -> resolve: poll the Source's reference, and those of other Sources of the same
 * upstream, `besides`. `lost` is an unreadable artifact of that `revision`. With `pin`, find this revision, at which templates
 * stay, and leave the reference alone.
 */
export const resolveMessage = z.strictObject({
  to: z.literal("resolve"),
  source: objectRef,
  besides: z.array(objectRef).optional(),
  lost: z.string().optional(),
  revision: z.string().optional(),
  pin: z.string().optional(),
});

/**
 * api, resolve, render, report, tick -> rollout (FIFO, group = owner): something about the owner may have changed on
 * these clusters, or without `clusters` on any. `after`: a check of all clusters that did not fit into one call
 * continues after this cluster.
 */
export const rolloutMessage = z.strictObject({
  to: z.literal("rollout"),
  owner: ownerRef,
  clusters: z.array(z.string()).optional(),
  after: z.string().optional(),
});

/**
 * rollout, apply, tick -> render: this distinct input waits for its rendering, or still needs it. `notify` is the
 * requester, `source` the Source whose artifact may be used, `besides` the Sources of other artifacts that it needs,
 * and `lost` an unreadable rendering.
 */
export const renderMessage = z.strictObject({
  to: z.literal("render"),
  input: z.string(),
  notify: ownerRef.optional(),
  source: sourceRef.optional(),
  besides: z.array(sourceRef.extend({ besides: z.string() })).optional(),
  lost: z.string().optional(),
});

/** api, tick -> discover: scan the accounts of the ClusterDiscovery. */
const discoverMessage = z.strictObject({ to: z.literal("discover"), discovery: z.string() });

/**
 * api, rollout, apply, tick -> apply: the cluster has work. With `check`, a user wants to know whether the cluster is
 * reachable.
 */
const applyMessage = z.strictObject({
  to: z.literal("apply"),
  cluster: z.string(),
  check: z.literal(true).optional(),
});

/** api -> apply: a user wants to know whether the workers of a zone reach AWS. They know which zone is theirs. */
const checkZoneMessage = z.strictObject({
  to: z.literal("apply"),
  cluster: z.undefined().optional(),
  check: z.literal("zone"),
});

/** apply -> apply: the cluster has work and is slow. Only the worker that finds this out sends it. */
const applySlowMessage = z.strictObject({ to: z.literal("applySlow"), cluster: z.string() });

/** rollout, apply -> report: the state of a Sync on a cluster, or of a rollout in one stage, changed. */
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

export const message = z.union([
  z.discriminatedUnion("to", [
    resolveMessage,
    rolloutMessage,
    renderMessage,
    discoverMessage,
    applyMessage,
    applySlowMessage,
    reportMessage,
  ]),
  checkZoneMessage,
]);

export type ResolveMessage = z.infer<typeof resolveMessage>;
export type RolloutMessage = z.infer<typeof rolloutMessage>;
export type RenderMessage = z.infer<typeof renderMessage>;
export type ReportMessage = z.infer<typeof reportMessage>;
export type Message = z.infer<typeof message> & {
  /** The delay before the delivery, 0 to 900 s. It is refused on the FIFO queue, which supports none. */
  readonly delaySeconds?: number;
  /** To `apply`: the cluster's zone, which chooses the queue and is not sent. Absent when the sender does not know it. */
  readonly zone?: string;
  /** The correlation id. Default: that of the current work. It travels beside the message. */
  readonly correlationId?: string;
};
export type QueueName = Message["to"];

export function ownerKey(owner: OwnerRef): string {
  return `${owner.namespace}/${owner.kind}/${owner.name}`;
}

/** Distinct messages, because a repeated one finds nothing to do. */
export function distinctMessages(messages: readonly Message[]): readonly Message[] {
  return [...new Map(messages.map((each) => [JSON.stringify(each), each])).values()];
}

/** The messages that request polls of these Sources: one for each upstream. */
export function pollMessages(sources: Parameters<typeof polledTogether>[0]): ResolveMessage[] {
  return polledTogether(sources).flatMap(pollMessage);
}

/** The message that requests polls of Sources of one upstream; none for no Source. */
export function pollMessage(sources: readonly ResolveMessage["source"][]): ResolveMessage[] {
  const [source, ...besides] = sources.map(({ namespace, name }) => ({ namespace, name }));
  if (source === undefined) return [];
  return [{ to: "resolve", source, ...(besides.length === 0 ? {} : { besides }) }];
}
