import { KindCatalog } from "#shared/adapters/kube/kind-catalog.ts";
import { errorFrom, warningsOf } from "#shared/adapters/kube/kube-answers.ts";
import { type KubeEndpoint, KubeTransport, type TransportAnswer } from "#shared/adapters/kube/kube-transport.ts";
import { withRetries } from "#shared/adapters/kube/retry-policy.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type {
  ClusterClient,
  KindInfo,
  KindLookup,
  KindQuery,
  ListQuery,
  ObjectKey,
  WriteAnswer,
} from "#shared/domain/cluster-client.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/domain/json.ts";
import { KubeError } from "#shared/domain/kube-error.ts";
import { fieldManager, type KubeObject, listAt, type ManifestObject, stringAt } from "#shared/domain/kube-object.ts";
import type { JsonPatchOperation } from "#shared/domain/managed-fields.ts";
import { apiVersionOf } from "#shared/domain/object-id.ts";
import type { Clock } from "#shared/ports.ts";

const requestTimeoutMs = 30_000;
const maxAnswerBytes = 8 * 1024 * 1024;
const maxPageBytes = 24 * 1024 * 1024;
const pageSize = 500;
const smallestPage = 10;
const maxRelists = 3;

const metadataOf = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const metadataOfList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

export interface ClientOptions {
  /** Epoch milliseconds of the connection's clock after which nothing is waited for or tried again. */
  readonly deadlineMs: number;
  /** Who every request is made as; discovery is too. */
  readonly impersonate?: { readonly user: string; readonly groups?: readonly string[] };
}

interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly secret?: boolean;
  readonly maxBodyBytes?: number;
  readonly retryConflicts?: boolean;
}

/** The kept part of talking to a cluster: connections, and what kinds it serves. One for each cluster and process. */
export class KubeConnection {
  readonly #transport: KubeTransport;
  readonly #clock: Clock;
  readonly #catalogs = new Map<string, KindCatalog>();

  constructor(endpoint: KubeEndpoint, clock: Clock = systemClock) {
    this.#transport = new KubeTransport(endpoint);
    this.#clock = clock;
  }

  /** A client for one piece of work. */
  client(options: ClientOptions): ClusterClient {
    const sender = new KubeSender(this.#transport, { ...options, clock: this.#clock });
    return new KubeClusterClient(sender, this.#catalogOf(options));
  }

  /** The catalog outlives the client it was made for, so its requests have a deadline of their own. */
  #catalogOf(options: ClientOptions): KindCatalog {
    const identity = stringifyJson(options.impersonate ?? null);
    const known = this.#catalogs.get(identity);
    if (known !== undefined) return known;
    const catalog = new KindCatalog((path, accept) => {
      const deadlineMs = this.#clock.now().getTime() + requestTimeoutMs;
      return new KubeSender(this.#transport, { ...options, deadlineMs, clock: this.#clock }).read(path, accept);
    });
    this.#catalogs.set(identity, catalog);
    return catalog;
  }

  close(): void {
    this.#transport.close();
  }
}

/** Requests with retries, errors and Warning headers, but no knowledge of kinds. */
class KubeSender {
  readonly #transport: KubeTransport;
  readonly #options: ClientOptions & { readonly clock: Clock };

  constructor(transport: KubeTransport, options: ClientOptions & { readonly clock: Clock }) {
    this.#transport = transport;
    this.#options = options;
  }

  async read(path: string, accept: string): Promise<string> {
    return (await this.send({ method: "GET", path, accept, maxBodyBytes: maxPageBytes })).text;
  }

  send(request: KubeRequest): Promise<TransportAnswer> {
    const { deadlineMs, clock } = this.#options;
    const retryConflicts = request.retryConflicts ?? false;
    return withRetries({ deadlineMs, clock, retryConflicts }, () => this.#sendOnce(request));
  }

  async #sendOnce(request: KubeRequest): Promise<TransportAnswer> {
    const { impersonate, deadlineMs, clock } = this.#options;
    const answer = await this.#transport.send({
      method: request.method,
      path: request.path,
      headers: {
        ...(request.accept === undefined ? {} : { accept: request.accept }),
        ...(request.contentType === undefined ? {} : { "content-type": request.contentType }),
        ...(impersonate === undefined ? {} : { "impersonate-user": impersonate.user }),
        ...(impersonate?.groups === undefined ? {} : { "impersonate-group": [...impersonate.groups] }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      secret: request.secret === true,
      timeoutMs: Math.min(requestTimeoutMs, deadlineMs - clock.now().getTime()),
      maxBodyBytes: request.maxBodyBytes ?? maxAnswerBytes,
    });
    if (answer.status >= 200 && answer.status < 300) return answer;
    const { method, path, secret = false } = request;
    throw errorFrom({ method, path, secret }, answer);
  }
}

class KubeClusterClient implements ClusterClient {
  readonly #sender: KubeSender;
  readonly #catalog: KindCatalog;

  constructor(sender: KubeSender, catalog: KindCatalog) {
    this.#sender = sender;
    this.#catalog = catalog;
  }

  async serverVersion(): Promise<string> {
    const answer = await this.#sender.send({ method: "GET", path: "/version" });
    return stringAt(parseJson(answer.text), "gitVersion") ?? "";
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
    try {
      const answer = await this.#sender.send({
        method: "GET",
        path: pathOf(kind, key),
        secret: isSecret(kind),
        ...(options?.metadataOnly ? { accept: metadataOf } : {}),
      });
      return readObject(kind, parseJson(answer.text));
    } catch (error) {
      if (error instanceof KubeError && (error.class === "notFound" || error.class === "namespace")) return undefined;
      throw error;
    }
  }

  async list(kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]> {
    for (let relist = 0; ; relist += 1) {
      try {
        return await this.#listOnce(kind, query);
      } catch (error) {
        const expired = error instanceof KubeError && error.class === "expired";
        if (!expired || relist >= maxRelists) throw error;
      }
    }
  }

  async #listOnce(kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]> {
    const items: KubeObject[] = [];
    const maxItems = query.maxItems ?? Number.POSITIVE_INFINITY;
    let limit = Math.min(pageSize, maxItems);
    let token: string | undefined;
    for (;;) {
      const page = await this.#page(kind, query, { limit, token });
      if (page === "too large") {
        limit = Math.max(smallestPage, Math.floor(limit / 4));
        continue;
      }
      for (const item of listAt(page, "items")) items.push(readObject(kind, item));
      token = stringAt(page, "metadata", "continue") || undefined;
      if (token === undefined || items.length >= maxItems) return items;
    }
  }

  async #page(
    kind: KindInfo,
    query: ListQuery,
    { limit, token }: { readonly limit: number; readonly token: string | undefined },
  ): Promise<Json | "too large"> {
    const parameters = new URLSearchParams({ limit: String(limit) });
    if (query.labelSelector !== undefined) parameters.set("labelSelector", query.labelSelector);
    if (token !== undefined) parameters.set("continue", token);
    try {
      const answer = await this.#sender.send({
        method: "GET",
        path: `${pathOf(kind, { namespace: query.namespace ?? "" })}?${parameters}`,
        secret: isSecret(kind),
        maxBodyBytes: maxPageBytes,
        ...(query.metadataOnly ? { accept: metadataOfList } : {}),
      });
      return parseJson(answer.text);
    } catch (error) {
      if (error instanceof KubeError && error.class === "tooLarge" && limit > smallestPage) return "too large";
      throw error;
    }
  }

  apply(kind: KindInfo, object: ManifestObject, options?: { readonly dryRun?: true }): Promise<WriteAnswer> {
    const dryRun = options?.dryRun ? "&dryRun=All" : "";
    return this.#write(kind, {
      method: "PATCH",
      path: `${pathOf(kind, keyOf(object))}?fieldManager=${fieldManager}&force=true&fieldValidation=Strict${dryRun}`,
      contentType: "application/apply-patch+yaml",
      body: stringifyJson(object),
      retryConflicts: true,
    });
  }

  create(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer> {
    return this.#write(kind, {
      method: "POST",
      path: `${pathOf(kind, { namespace: keyOf(object).namespace })}?fieldManager=${fieldManager}`,
      contentType: "application/json",
      body: stringifyJson(object),
    });
  }

  replace(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer> {
    return this.#write(kind, {
      method: "PUT",
      path: `${pathOf(kind, keyOf(object))}?fieldManager=${fieldManager}`,
      contentType: "application/json",
      body: stringifyJson(object),
    });
  }

  patch(kind: KindInfo, key: ObjectKey, operations: readonly JsonPatchOperation[]): Promise<WriteAnswer> {
    return this.#write(kind, {
      method: "PATCH",
      path: `${pathOf(kind, key)}?fieldManager=${fieldManager}`,
      contentType: "application/json-patch+json",
      body: stringifyJson(operations),
    });
  }

  async delete(kind: KindInfo, key: ObjectKey, { uid }: { readonly uid: string }): Promise<void> {
    await this.#sender.send({
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
    });
  }

  async #write(kind: KindInfo, request: KubeRequest): Promise<WriteAnswer> {
    const answer = await this.#sender.send({ ...request, secret: isSecret(kind) });
    return {
      object: readObject(kind, parseJson(answer.text)),
      created: answer.status === 201,
      warnings: warningsOf(answer),
    };
  }
}

/** Names are percent-encoded and otherwise left alone: RBAC names may hold capitals and colons. */
function pathOf(kind: KindInfo, key: Partial<ObjectKey>): string {
  const base = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const namespace = kind.namespaced && key.namespace ? `/namespaces/${encodeURIComponent(key.namespace)}` : "";
  const name = key.name === undefined ? "" : `/${encodeURIComponent(key.name)}`;
  return `${base}${namespace}/${kind.plural}${name}`;
}

function keyOf(object: ManifestObject): ObjectKey {
  return { namespace: object.metadata.namespace ?? "", name: object.metadata.name };
}

function isSecret(kind: KindInfo): boolean {
  return kind.group === "" && kind.kind === "Secret";
}

/** Items of lists lack apiVersion and kind, and metadata has that of its envelope: both get those of the kind. */
function readObject(kind: KindInfo, value: Json): KubeObject {
  if (!isJsonObject(value)) return {};
  return { ...value, apiVersion: apiVersionOf(kind.group, kind.version), kind: kind.kind };
}
