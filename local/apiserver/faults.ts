/** The faults of one embedded cluster as plain data, from tests and from `starling local faults`. */
import { STATUS_CODES } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import type { InterceptedRequest, Interception } from "#apiserver/interception.ts";
import { createRandom, type Random } from "#apiserver/random.ts";

/** Selects the requests that a fault affects. All given fields must match; without any field, every request matches. */
const chosen = {
  /** The fault affects this many requests from now on and then ends. */
  next: z.int().min(1).optional(),
  /** The share of matching requests that the fault affects, from 0 to 1. The default is 1. The seed decides which. */
  probability: z.number().min(0).max(1).optional(),
  methods: z.array(z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"])).optional(),
  /** A part of the path below the cluster, for example `/configmaps/`. */
  pathIncludes: z.string().min(1).optional(),
};

const phase = z.enum(["before", "after"]);

const webhook = {
  /** The webhook's name in error messages, for example `policy.example.com`. */
  name: z.string().min(1),
  /** For example `ConfigMap` or `Widget.example.com`. The default is all kinds. */
  kinds: z.array(z.string().min(1)).optional(),
  namespaces: z.array(z.string().min(1)).optional(),
  /** The default is CREATE and UPDATE. */
  operations: z.array(z.enum(["CREATE", "UPDATE", "DELETE"])).optional(),
  /** With `Some`, the server refuses every matching dry run. The default is `None`. */
  sideEffects: z.enum(["None", "Some"]).optional(),
};

export const webhookSchema = z.discriminatedUnion("does", [
  z.strictObject({
    ...webhook,
    does: z.literal("deny"),
    message: z.string(),
    /** The status code. The default is 403, as with most webhooks. */
    code: z.int().min(400).max(499).optional(),
  }),
  z.strictObject({
    ...webhook,
    does: z.literal("rewrite"),
    /** A patch as in RFC 6902, for the object that the server sends to the webhook. */
    patch: z.array(z.record(z.string(), z.json())).min(1),
  }),
  z.strictObject({
    ...webhook,
    does: z.literal("fail"),
    /** The error of the call. The default is a refused connection. */
    error: z.string().min(1).optional(),
    /** With `Ignore`, the request continues. The default is `Fail`. */
    failurePolicy: z.enum(["Fail", "Ignore"]).optional(),
  }),
]);

export const clusterFaultsSchema = z.strictObject({
  /** The seed of all random choices. The default is 1. The same requests in the same order meet the same faults. */
  seed: z.int().min(0).optional(),
  /** A delay before each answer: `ms`, plus up to `jitterMs`. */
  latency: z
    .strictObject({ ms: z.int().min(0).max(600_000), jitterMs: z.int().min(0).max(600_000).optional() })
    .optional(),
  /** Answers 429 before the request has an effect. */
  throttle: z.strictObject({ ...chosen, retryAfterSeconds: z.int().min(0).max(3_600).optional() }).optional(),
  /** Answers 5xx before the request has an effect, or after it when `phase` is `after`. */
  errors: z
    .strictObject({
      ...chosen,
      status: z.int().min(500).max(599),
      phase: phase.optional(),
      message: z.string().optional(),
    })
    .optional(),
  /** Cuts the connection before the request has an effect, or after it when `phase` is `after`. */
  resets: z.strictObject({ ...chosen, phase: phase.optional() }).optional(),
  /** The server shows a certificate that expired yesterday. The cluster needs a port of its own. */
  certificate: z.literal("expired").optional(),
  /** With `refused`, no server listens. With `hangs`, no request is answered. The cluster needs a port of its own. */
  network: z.enum(["refused", "hangs"]).optional(),
  webhooks: z.array(webhookSchema).optional(),
  /**
   * Aggregated APIs whose server does not answer, by the names of their APIServices, for example
   * `v1beta1.metrics.k8s.io`.
   */
  unavailableApis: z
    .array(z.string().regex(/^v[0-9][a-z0-9]*\.[a-z0-9.-]+$/, "expected VERSION.GROUP, such as v1beta1.metrics.k8s.io"))
    .optional(),
});

/** All faults of one cluster. A field that is left out injects no fault. */
export type ClusterFaults = z.infer<typeof clusterFaultsSchema>;
export type Webhook = z.infer<typeof webhookSchema>;
type Choice = z.infer<z.ZodObject<typeof chosen>>;
type Counted = "throttle" | "errors" | "resets";

/** With `hold`, the connection stays silent until the faults of its cluster change. */
export type Disturbance = Interception | "hold";

const defaultSeed = 1;

/** The default message for each status. */
const errorTexts: Readonly<Record<number, { readonly reason?: string; readonly message: string }>> = {
  500: { message: "etcdserver: leader changed" },
  503: { reason: "ServiceUnavailable", message: "the server is currently unable to handle the request" },
  504: { reason: "Timeout", message: "Timeout: request did not complete within the allotted timeout" },
};

/** The current faults of one cluster, and what remains of faults with a limit. */
export class FaultPlan {
  #faults: ClusterFaults = {};
  #random: Random = createRandom(defaultSeed);
  readonly #left = new Map<Counted, number>();
  readonly #held = new Set<() => void>();

  /** Replaces all faults, restarts the random sequence and cuts held connections. */
  set(faults: ClusterFaults): void {
    this.#faults = faults;
    this.#random = createRandom(faults.seed ?? defaultSeed);
    this.#left.clear();
    for (const name of ["throttle", "errors", "resets"] as const) {
      const next = faults[name]?.next;
      if (next !== undefined) this.#left.set(name, next);
    }
    for (const cut of this.#held) cut();
    this.#held.clear();
  }

  /** The current faults. `next` counts the requests that a fault still affects; a fault that is used up is left out. */
  current(): ClusterFaults {
    const { throttle, errors, resets, ...rest } = this.#faults;
    return {
      ...rest,
      ...(throttle === undefined ? {} : this.#remaining("throttle", throttle)),
      ...(errors === undefined ? {} : this.#remaining("errors", errors)),
      ...(resets === undefined ? {} : this.#remaining("resets", resets)),
    };
  }

  get webhooks(): readonly Webhook[] {
    return this.#faults.webhooks ?? [];
  }

  /** Group and version of each aggregated API that does not answer. */
  unavailableApis(): readonly { readonly group: string; readonly version: string }[] {
    return (this.#faults.unavailableApis ?? []).map((name) => {
      const dot = name.indexOf(".");
      return { group: name.slice(dot + 1), version: name.slice(0, dot) };
    });
  }

  /**
   * Keeps a connection silent until the faults change; then `cut` ends it. @returns a function that forgets the
   * connection.
   */
  hold(cut: () => void): () => void {
    this.#held.add(cut);
    return () => this.#held.delete(cut);
  }

  /** Decides the fault of a request, before or after its effect. Waits for the latency first. */
  async disturb(request: Omit<InterceptedRequest, "cluster">): Promise<Disturbance> {
    if (request.phase === "before") await this.#delay();
    const { network, throttle, errors, resets } = this.#faults;
    if (network !== undefined) return network === "hangs" ? "hold" : "reset";
    if (request.phase === "before" && throttle !== undefined && this.#meets("throttle", throttle, request)) {
      return tooManyRequests(throttle.retryAfterSeconds ?? 1);
    }
    if (errors !== undefined && (errors.phase ?? "before") === request.phase && this.#meets("errors", errors, request))
      return serverError(errors.status, errors.message);
    if (resets !== undefined && (resets.phase ?? "before") === request.phase && this.#meets("resets", resets, request))
      return "reset";
    return "pass";
  }

  async #delay(): Promise<void> {
    const { latency } = this.#faults;
    if (latency === undefined) return;
    await sleep(latency.ms + this.#random.integer(0, latency.jitterMs ?? 0));
  }

  #meets(name: Counted, choice: Choice, request: Omit<InterceptedRequest, "cluster">): boolean {
    const { methods, pathIncludes, probability } = choice;
    if (methods !== undefined && !methods.some((method) => method === request.method)) return false;
    if (pathIncludes !== undefined && !request.path.includes(pathIncludes)) return false;
    const left = this.#left.get(name);
    if (left === 0 || !this.#random.chance(probability ?? 1)) return false;
    if (left !== undefined) this.#left.set(name, left - 1);
    return true;
  }

  #remaining<Name extends Counted>(name: Name, choice: NonNullable<ClusterFaults[Name]>): Pick<ClusterFaults, Name> {
    const left = this.#left.get(name);
    if (left === 0) return {} as Pick<ClusterFaults, Name>;
    return { [name]: left === undefined ? choice : { ...choice, next: left } } as Pick<ClusterFaults, Name>;
  }
}

/** As API priority and fairness answers: plain text instead of a Status. */
function tooManyRequests(retryAfterSeconds: number): Interception {
  return {
    status: 429,
    body: "Too many requests, please try again later.\n",
    headers: { "content-type": "text/plain; charset=utf-8", "retry-after": String(retryAfterSeconds) },
  };
}

function serverError(status: number, given: string | undefined): Interception {
  const { reason, message } = errorTexts[status] ?? { message: STATUS_CODES[status] ?? "Unknown" };
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: given ?? message };
  return { status, body: { ...body, ...(reason === undefined ? {} : { reason }), code: status } };
}
