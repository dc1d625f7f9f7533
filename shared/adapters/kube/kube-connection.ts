import { AccessReviews } from "#shared/adapters/kube/access-reviews.ts";
import { AnswerBudget, answerLimits } from "#shared/adapters/kube/answer-budget.ts";
import { KindCatalog } from "#shared/adapters/kube/kind-catalog.ts";
import { headerWarnings, saysGone, shapeNameOf, shapeProblem } from "#shared/adapters/kube/kube-answers.ts";
import { type KubeRequest, KubeSender, malformedAnswer, requestTimeoutMs } from "#shared/adapters/kube/kube-sender.ts";
import { type KubeEndpoint, KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import { listPages } from "#shared/adapters/kube/list-pages.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type Json, stringifyJson } from "#shared/base/json.ts";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";
import type {
  ClusterClient,
  KindInfo,
  KindLookup,
  KindQuery,
  ListQuery,
  ObjectKey,
  WriteAnswer,
  WritePermit,
} from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { fieldManager, type KubeObject, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import type { JsonPatchOperation } from "#shared/kube/managed-fields.ts";
import { apiVersionOf } from "#shared/kube/object-id.ts";

const metadataOf = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const metadataOfList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

export interface KubeClientOptions {
  /** The time on the connection's clock, in epoch milliseconds, after which no wait or retry begins. */
  readonly deadlineMs: number;
  /** A request that takes longer, with all its tries, ends the work. */
  readonly answerWithinMs?: number;
  /** The identity of all requests, including discovery. */
  readonly impersonate?: { readonly user: string; readonly groups?: readonly string[] };
}

/**
 * The long-lived part of the communication with a cluster: its connections, and the kinds that it serves. There is one
 * for each cluster and process.
 */
export class KubeConnection {
  readonly #transport: KubeTransport;
  readonly #clock: SleepingClock;
  /** The value of the newest client. Only one piece of work runs at a time. */
  #answerWithinMs: number | undefined;
  readonly #catalogs = new Map<string, KindCatalog>();

  constructor(endpoint: KubeEndpoint, clock: SleepingClock = systemClock) {
    this.#transport = new KubeTransport(endpoint);
    this.#clock = clock;
  }

  /** A client for one piece of work. */
  client(options: KubeClientOptions): ClusterClient {
    this.#answerWithinMs = options.answerWithinMs;
    const sender = new KubeSender(this.#transport, { ...options, clock: this.#clock, budget: new AnswerBudget() });
    return new KubeClusterClient(sender, this.#catalogOf(options));
  }

  /** The permissions of the endpoint's credentials. */
  reviews(options: KubeClientOptions): AccessReviews {
    return new AccessReviews(
      new KubeSender(this.#transport, { ...options, clock: this.#clock, budget: new AnswerBudget() }),
    );
  }

  /** The catalog lives longer than the client that created it, so that its requests have their own deadline. */
  #catalogOf(options: KubeClientOptions): KindCatalog {
    const identity = stringifyJson(options.impersonate ?? null);
    const known = this.#catalogs.get(identity);
    if (known !== undefined) return known;
    const catalog = new KindCatalog(async (path, accept) => {
      const deadlineMs = this.#clock.now().getTime() + requestTimeoutMs;
      const budget = new AnswerBudget();
      const { answerWithinMs: _first, ...asWhom } = options;
      const limits = { deadlineMs, ...defined({ answerWithinMs: this.#answerWithinMs }) };
      const sender = new KubeSender(this.#transport, { ...asWhom, ...limits, clock: this.#clock, budget });
      return (await sender.read({ method: "GET", path, accept, limit: answerLimits.discovery })).body;
    }, this.#clock);
    this.#catalogs.set(identity, catalog);
    return catalog;
  }

  /** The number of the cluster's kinds in memory. */
  get keptKinds(): number {
    return [...this.#catalogs.values()].reduce((sum, { size }) => sum + size, 0);
  }

  close(): void {
    this.#transport.close();
  }
}

class KubeClusterClient implements ClusterClient {
  readonly #sender: KubeSender;
  readonly #catalog: KindCatalog;

  constructor(sender: KubeSender, catalog: KindCatalog) {
    this.#sender = sender;
    this.#catalog = catalog;
  }

  guardedBy(permit: WritePermit): ClusterClient {
    return new KubeClusterClient(this.#sender.guardedBy(permit), this.#catalog);
  }

  async serverVersion(): Promise<string> {
    const { body } = await this.#sender.read({ method: "GET", path: "/version", limit: answerLimits.object });
    return stringAt(body, "gitVersion") ?? "";
  }

  lookup(query: KindQuery): Promise<KindLookup> {
    return this.#catalog.lookup(query);
  }

  listableKinds(): Promise<readonly KindInfo[]> {
    return this.#catalog.listableKinds();
  }

  forgetKinds(): void {
    this.#catalog.forget();
  }

  async get(
    kind: KindInfo,
    key: ObjectKey,
    options?: { readonly metadataOnly?: true },
  ): Promise<KubeObject | undefined> {
    const request: KubeRequest = {
      method: "GET",
      path: pathOf(kind, key),
      secret: isSecret(kind),
      limit: answerLimits.object,
      holds: true,
      ...(options?.metadataOnly ? { accept: metadataOf } : {}),
    };
    try {
      return readObject(kind, (await this.#sender.read(request)).body, { request, name: key.name });
    } catch (error) {
      if (error instanceof KubeError && (error.class === "notFound" || error.class === "namespace")) return undefined;
      throw error;
    }
  }

  list(kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]> {
    const { namespace = "", labelSelector, metadataOnly, maxItems, keep = () => true } = query;
    return listPages(this.#sender, {
      path: pathOf(kind, { namespace }),
      parameters: labelSelector === undefined ? {} : { labelSelector },
      secret: isSecret(kind),
      ...(metadataOnly ? { accept: metadataOfList } : {}),
      ...defined({ maxItems }),
      take: (item, request, index) => {
        const object = readObject(kind, item, { request, what: `items[${index}].` });
        return keep(object) ? object : undefined;
      },
    });
  }

  apply(kind: KindInfo, object: ManifestObject, options?: { readonly dryRun?: true }): Promise<WriteAnswer> {
    const dryRun = options?.dryRun ? "&dryRun=All" : "";
    return this.#write(kind, keyOf(object), {
      method: "PATCH",
      path: `${pathOf(kind, keyOf(object))}?fieldManager=${fieldManager}&force=true&fieldValidation=Strict${dryRun}`,
      contentType: "application/apply-patch+yaml",
      body: stringifyJson(object),
      retryConflicts: object.metadata.resourceVersion === undefined,
    });
  }

  create(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer> {
    return this.#write(kind, keyOf(object), {
      method: "POST",
      path: `${pathOf(kind, { namespace: keyOf(object).namespace })}?fieldManager=${fieldManager}`,
      contentType: "application/json",
      body: stringifyJson(object),
    });
  }

  replace(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer> {
    return this.#write(kind, keyOf(object), {
      method: "PUT",
      path: `${pathOf(kind, keyOf(object))}?fieldManager=${fieldManager}`,
      contentType: "application/json",
      body: stringifyJson(object),
    });
  }

  patch(kind: KindInfo, key: ObjectKey, operations: readonly JsonPatchOperation[]): Promise<WriteAnswer> {
    return this.#write(kind, key, {
      method: "PATCH",
      path: `${pathOf(kind, key)}?fieldManager=${fieldManager}`,
      contentType: "application/json-patch+json",
      body: stringifyJson(operations),
    });
  }

  async delete(kind: KindInfo, key: ObjectKey, { uid }: { readonly uid: string }): Promise<"gone" | "asked"> {
    const { text } = await this.#sender.send({
      method: "DELETE",
      path: pathOf(kind, key),
      contentType: "application/json",
      body: stringifyJson({
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: { uid },
        propagationPolicy: "Background",
      }),
      secret: isSecret(kind),
      limit: answerLimits.object,
    });
    return saysGone(text, uid) ? "gone" : "asked";
  }

  async #write(
    kind: KindInfo,
    { name }: ObjectKey,
    write: Omit<KubeRequest, "secret" | "limit">,
  ): Promise<WriteAnswer> {
    const request = { ...write, secret: isSecret(kind), limit: answerLimits.object };
    const answer = await this.#sender.read(request);
    return {
      object: readObject(kind, answer.body, { request, name }),
      created: answer.status === 201,
      warnings: headerWarnings(answer),
    };
  }
}

/** Names are percent-encoded and otherwise unchanged, because RBAC names may contain capitals and colons. */
function pathOf(kind: KindInfo, key: Partial<ObjectKey>): string {
  const base = kind.group === "" ? ["api", kind.version] : ["apis", kind.group, kind.version];
  const namespace = kind.namespaced && key.namespace ? ["namespaces", key.namespace] : [];
  const segments = [...base, ...namespace, kind.plural, ...(key.name === undefined ? [] : [key.name])];
  return segments.map((segment) => `/${encodeSegment(segment, kind)}`).join("");
}

/** Names from manifests, inventories and discovery were checked before. An unchecked name could change the request. */
function encodeSegment(segment: string, { kind }: KindInfo): string {
  const problem = segment === "" ? "must not be empty" : pathSegmentProblem(segment);
  if (problem === undefined) return encodeURIComponent(segment);
  const message = `${JSON.stringify(foreignText(segment, 80))} of a ${foreignText(kind, 80)} cannot be a part of an API address: it ${problem}`;
  throw new KubeError(
    { method: "GET", path: "/", secret: false },
    { status: 400, reason: "InvalidName", message, causes: [] },
  );
}

function keyOf(object: ManifestObject): ObjectKey {
  return { namespace: object.metadata.namespace ?? "", name: object.metadata.name };
}

function isSecret(kind: KindInfo): boolean {
  return kind.group === "" && kind.kind === "Secret";
}

interface ObjectAnswer {
  readonly request: Pick<KubeRequest, "method" | "path" | "secret">;
  /** The name of the requested object. */
  readonly name?: string;
  /** The place of the object in the answer. */
  readonly what?: string;
}

/** Adds apiVersion and kind. Items of lists lack them, and metadata has those of its envelope. */
function readObject(kind: KindInfo, value: Json, { request, name, what = "" }: ObjectAnswer): KubeObject {
  if (!isJsonObject(value)) throw malformedAnswer(request, `it is ${shapeNameOf(value)}, expected an object`);
  const problem = shapeProblem(value);
  if (problem !== undefined) throw malformedAnswer(request, `${what}${problem}`);
  const named = stringAt(value, "metadata", "name");
  if (name !== undefined && named !== name) throw malformedAnswer(request, `it contains a different object, ${named}`);
  return { ...value, apiVersion: apiVersionOf(kind.group, kind.version), kind: kind.kind };
}
