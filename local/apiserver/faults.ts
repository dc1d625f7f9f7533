/** What goes wrong with one embedded cluster, on purpose: plain data, from tests and from `starling local faults`. */
import { STATUS_CODES } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import type { InterceptedRequest, Interception } from "#apiserver/interception.ts";
import { createRandom, type Random } from "#apiserver/random.ts";

/** Which requests a fault meets: every one, unless something is said. What is said must all hold. */
const chosen = {
  /** So many requests from now on, then no more. */
  next: z.int().min(1).optional(),
  /** Of each request that would be met, from 0 to 1; 1 by default. Drawn from the seed. */
  probability: z.number().min(0).max(1).optional(),
  methods: z.array(z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"])).optional(),
  /** A part of the path below the cluster, such as `/configmaps/`. */
  pathIncludes: z.string().min(1).optional(),
};

const phase = z.enum(["before", "after"]);

const webhook = {
  /** As the server names it: `policy.example.com`. */
  name: z.string().min(1),
  /** `ConfigMap`, `Widget.example.com`; all kinds when left out. */
  kinds: z.array(z.string().min(1)).optional(),
  namespaces: z.array(z.string().min(1)).optional(),
  /** CREATE and UPDATE by default. */
  operations: z.array(z.enum(["CREATE", "UPDATE", "DELETE"])).optional(),
  /** With `Some`, every dry run that it would see is refused; `None` by default. */
  sideEffects: z.enum(["None", "Some"]).optional(),
};

export const webhookSchema = z.discriminatedUnion("does", [
  z.strictObject({
    ...webhook,
    does: z.literal("deny"),
    message: z.string(),
    /** 403 by default, as most webhooks answer. */
    code: z.int().min(400).max(499).optional(),
  }),
  z.strictObject({
    ...webhook,
    does: z.literal("rewrite"),
    /** RFC 6902, for the object as the webhook is sent it. */
    patch: z.array(z.record(z.string(), z.json())).min(1),
  }),
  z.strictObject({
    ...webhook,
    does: z.literal("fail"),
    /** What calling it ended with; a refused connection by default. */
    error: z.string().min(1).optional(),
    /** `Ignore` lets requests pass; `Fail` by default. */
    failurePolicy: z.enum(["Fail", "Ignore"]).optional(),
  }),
]);

export const clusterFaultsSchema = z.strictObject({
  /** Of everything that is left to chance; 1 by default. The same requests in the same order meet the same faults. */
  seed: z.int().min(0).optional(),
  /** Before each answer: `ms`, and up to `jitterMs` more. */
  latency: z
    .strictObject({ ms: z.int().min(0).max(600_000), jitterMs: z.int().min(0).max(600_000).optional() })
    .optional(),
  /** 429 before anything is done. */
  throttle: z.strictObject({ ...chosen, retryAfterSeconds: z.int().min(0).max(3_600).optional() }).optional(),
  /** An answer of 5xx, before the request had its effect unless `phase` is `after`. */
  errors: z
    .strictObject({
      ...chosen,
      status: z.int().min(500).max(599),
      phase: phase.optional(),
      message: z.string().optional(),
    })
    .optional(),
  /** The connection is cut, before the request had its effect unless `phase` is `after`. */
  resets: z.strictObject({ ...chosen, phase: phase.optional() }).optional(),
  /** What the server proves itself with ended yesterday. Needs a port of the cluster's own. */
  certificate: z.literal("expired").optional(),
  /** Nothing listens, or nothing ever answers. Needs a port of the cluster's own. */
  network: z.enum(["refused", "hangs"]).optional(),
  webhooks: z.array(webhookSchema).optional(),
  /** Aggregated APIs whose server does not answer, as their APIServices are named: `v1beta1.metrics.k8s.io`. */
  unavailableApis: z
    .array(z.string().regex(/^v[0-9][a-z0-9]*\.[a-z0-9.-]+$/, "expected VERSION.GROUP, such as v1beta1.metrics.k8s.io"))
    .optional(),
});

/** All knobs of one cluster; what is left out works. */
export type ClusterFaults = z.infer<typeof clusterFaultsSchema>;
export type Webhook = z.infer<typeof webhookSchema>;
type Choice = z.infer<z.ZodObject<typeof chosen>>;
type Counted = "throttle" | "errors" | "resets";

/** `hold` is never answered: the connection stays silent until the faults of its cluster change. */
export type Disturbance = Interception | "hold";

const defaultSeed = 1;

/** What a server of this status says, where nothing else is asked for. */
const errorTexts: Readonly<Record<number, { readonly reason?: string; readonly message: string }>> = {
  500: { message: "etcdserver: leader changed" },
  503: { reason: "ServiceUnavailable", message: "the server is currently unable to handle the request" },
  504: { reason: "Timeout", message: "Timeout: request did not complete within the allotted timeout" },
};

/** The faults of one cluster as they are now, and what is left of those that end by themselves. */
export class FaultPlan {
  #faults: ClusterFaults = {};
  #random: Random = createRandom(defaultSeed);
  readonly #left = new Map<Counted, number>();
  readonly #held = new Set<() => void>();

  /** Replaces every knob; begins the seed anew, and cuts what a silent network held. */
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

  /** The knobs as they are now: `next` counts what is still to come, and a fault that is used up is gone. */
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

  /** Keeps a connection silent until the faults change; `cut` ends it then. @returns what forgets it. */
  hold(cut: () => void): () => void {
    this.#held.add(cut);
    return () => this.#held.delete(cut);
  }

  /** What becomes of a request, before or after its effect. Waits as long as the latency asks. */
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

/** As priority and fairness answer: plain text, and no Status. */
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
