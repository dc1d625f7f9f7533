import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { defined } from "#shared/base/defined.ts";
import { sha256 } from "#shared/base/digest.ts";

export interface RegistryServerOptions {
  readonly port?: number;
  /** How a reader or a writer proves who it is: by HTTP Basic, or by a token that it gets for HTTP Basic. */
  readonly login?: {
    readonly scheme: "basic" | "bearer";
    readonly username: string;
    readonly password: string;
  };
  /** Largest number of tags in a page. */
  readonly pageSize?: number;
  /** Whether it lists what refers to a manifest, which older registries do not. Default: true. */
  readonly referrers?: boolean;
  /** Called for each request, before it is answered. */
  readonly onRequest?: (request: IncomingMessage) => void;
}

export interface Layer {
  readonly mediaType: string;
  readonly content: Uint8Array;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface PushedArtifact {
  readonly artifactType?: string;
  /** Digest of the manifest that this one is about. */
  readonly refersTo?: string;
  readonly config?: Layer;
  readonly layers: readonly Layer[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RegistryServer {
  /** `127.0.0.1:5000` */
  readonly host: string;
  /** Pushes an artifact as a client would. @param tag - absent: it has its digest alone. @returns the digest of its manifest. */
  push(repository: string, tag: string | undefined, artifact: PushedArtifact): string;
  /** Pushes a chart that is packed. @returns the digest of its manifest. */
  pushChart(repository: string, version: string, packed: Uint8Array, provenance?: Uint8Array): string;
  /** Stores a manifest as it is. @returns its digest. */
  putManifest(repository: string, tag: string | undefined, bytes: Uint8Array, mediaType?: string): string;
  stop(): Promise<void>;
}

interface Stored {
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

const manifestType = "application/vnd.oci.image.manifest.v1+json";
const indexType = "application/vnd.oci.image.index.v1+json";
const defaultPageSize = 1000;

/**
 * An OCI registry on 127.0.0.1 that keeps everything in memory: the parts of the distribution specification that `helm`,
 * `flux` and `oras` use to push and pull.
 */
export async function startRegistryServer(options: RegistryServerOptions = {}): Promise<RegistryServer> {
  const blobs = new Map<string, Uint8Array>();
  const manifests = new Map<string, Map<string, Stored>>();
  const tags = new Map<string, Map<string, string>>();
  const uploads = new Map<string, Buffer>();
  const tokens = new Set<string>();

  const keepManifest = (repository: string, reference: string | undefined, stored: Stored): string => {
    const digest = sha256(stored.bytes);
    of(manifests, repository).set(digest, stored);
    if (reference !== undefined && reference !== digest) of(tags, repository).set(reference, digest);
    return digest;
  };
  const keepBlob = (bytes: Uint8Array): string => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return digest;
  };

  function refusal(request: IncomingMessage, url: URL): readonly [string, string] | undefined {
    const { login } = options;
    if (login === undefined) return undefined;
    const sent = request.headers.authorization ?? "";
    if (login.scheme === "basic" && sent === basicOf(login)) return undefined;
    if (login.scheme === "bearer" && tokens.has(sent.replace(/^Bearer /, ""))) return undefined;
    const challenge =
      login.scheme === "basic" ? 'Basic realm="registry"' : `Bearer realm="${url.origin}/token",service="${url.host}"`;
    return ["www-authenticate", challenge];
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    options.onRequest?.(request);
    const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
    if (url.pathname === "/token") {
      const { login } = options;
      if (login === undefined || request.headers.authorization !== basicOf(login)) return answer(response, 401);
      const token = randomUUID();
      tokens.add(token);
      return answer(response, 200, { body: JSON.stringify({ token, expires_in: 300 }) });
    }
    const refused = refusal(request, url);
    if (refused !== undefined) return answer(response, 401, { headers: Object.fromEntries([refused]) });
    if (url.pathname === "/v2/" || url.pathname === "/v2") return answer(response, 200, { body: "{}" });
    const [, name = "", kind = "", rest = ""] =
      /^\/v2\/(.+)\/(manifests|tags|blobs|referrers)\/(.*)$/.exec(url.pathname) ?? [];
    if (kind === "manifests") return manifest(request, response, { name, rest });
    if (kind === "tags") return listTags(response, { name, url });
    if (kind === "referrers" && options.referrers !== false) return listReferrers(response, { name, rest, url });
    if (kind === "blobs" && rest.startsWith("uploads/")) return upload(request, response, { name, rest, url });
    if (kind === "blobs") return blob(request, response, rest);
    answer(response, 404);
  }

  async function manifest(request: IncomingMessage, response: ServerResponse, at: { name: string; rest: string }) {
    if (request.method === "PUT") {
      const mediaType = request.headers["content-type"] ?? manifestType;
      const digest = keepManifest(at.name, at.rest, { mediaType, bytes: await buffer(request) });
      const headers = { location: `/v2/${at.name}/manifests/${digest}`, "docker-content-digest": digest };
      return answer(response, 201, { headers });
    }
    const digest = of(tags, at.name).get(at.rest) ?? at.rest;
    const stored = of(manifests, at.name).get(digest);
    if (stored === undefined) return answer(response, 404, { body: '{"errors":[{"code":"MANIFEST_UNKNOWN"}]}' });
    const headers = { "content-type": stored.mediaType, "docker-content-digest": digest };
    answer(response, 200, { headers, body: stored.bytes, isHead: request.method === "HEAD" });
  }

  function listTags(response: ServerResponse, { name, url }: { readonly name: string; readonly url: URL }): void {
    if (!tags.has(name)) return void answer(response, 404, { body: '{"errors":[{"code":"NAME_UNKNOWN"}]}' });
    const all = [...of(tags, name).keys()].sort();
    const after = url.searchParams.get("last");
    const asked = Number(url.searchParams.get("n") ?? defaultPageSize);
    const size = Math.min(asked, options.pageSize ?? defaultPageSize);
    const from = after === null ? 0 : all.findIndex((tag) => tag > after);
    const page = from === -1 ? [] : all.slice(from, from + size);
    const last = page.at(-1);
    const isMore = last !== undefined && from + size < all.length;
    const link = `</v2/${name}/tags/list?n=${size}&last=${encodeURIComponent(last ?? "")}>; rel="next"`;
    answer(response, 200, { headers: isMore ? { link } : {}, body: JSON.stringify({ name, tags: page }) });
  }

  function listReferrers(response: ServerResponse, at: { name: string; rest: string; url: URL }): void {
    const type = at.url.searchParams.get("artifactType");
    const found = [...of(manifests, at.name)].flatMap(([digest, { mediaType, bytes }]) => {
      const { artifactType, config, subject: about, annotations } = JSON.parse(Buffer.from(bytes).toString());
      const is = artifactType ?? config?.mediaType;
      if (about?.digest !== at.rest || (type !== null && is !== type)) return [];
      return { mediaType, digest, size: bytes.length, artifactType: is, ...defined({ annotations }) };
    });
    const body = JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: found });
    answer(response, 200, { headers: { "content-type": indexType }, body });
  }

  function blob(request: IncomingMessage, response: ServerResponse, digest: string): void {
    const bytes = blobs.get(digest);
    if (bytes === undefined) return void answer(response, 404, { body: '{"errors":[{"code":"BLOB_UNKNOWN"}]}' });
    const headers = { "content-type": "application/octet-stream", "docker-content-digest": digest };
    answer(response, 200, { headers, body: bytes, isHead: request.method === "HEAD" });
  }

  async function upload(
    request: IncomingMessage,
    response: ServerResponse,
    { name, rest, url }: { readonly name: string; readonly rest: string; readonly url: URL },
  ): Promise<void> {
    const id = rest.slice("uploads/".length) || randomUUID();
    const sent = Buffer.concat([uploads.get(id) ?? Buffer.alloc(0), await buffer(request)]);
    const digest = url.searchParams.get("digest");
    const location = `/v2/${name}/blobs/uploads/${id}`;
    if (digest === null) {
      uploads.set(id, sent);
      const headers = { location, range: `0-${Math.max(sent.length - 1, 0)}`, "docker-upload-uuid": id };
      return answer(response, 202, { headers });
    }
    uploads.delete(id);
    if (sha256(sent) !== digest) return answer(response, 400, { body: '{"errors":[{"code":"DIGEST_INVALID"}]}' });
    keepBlob(sent);
    answer(response, 201, { headers: { location: `/v2/${name}/blobs/${digest}`, "docker-content-digest": digest } });
  }

  const server = await serveOnLoopback(handle, defined({ port: options.port }));
  const descriptor = ({ mediaType, content, annotations }: Layer) => ({
    mediaType,
    digest: keepBlob(content),
    size: content.length,
    ...defined({ annotations }),
  });
  const reference = (repository: string, digest: string) => {
    const stored = of(manifests, repository).get(digest);
    return { mediaType: stored?.mediaType ?? manifestType, digest, size: stored?.bytes.length ?? 0 };
  };
  const registry: RegistryServer = {
    host: `127.0.0.1:${server.port}`,
    push(repository, tag, { artifactType, refersTo, config, layers, annotations }) {
      const body = {
        schemaVersion: 2,
        mediaType: manifestType,
        config: descriptor(config ?? { mediaType: "application/vnd.oci.empty.v1+json", content: Buffer.from("{}") }),
        layers: layers.map(descriptor),
        ...defined({ annotations, artifactType }),
        ...(refersTo === undefined ? {} : { subject: reference(repository, refersTo) }),
      };
      return registry.putManifest(repository, tag, Buffer.from(JSON.stringify(body)));
    },
    pushChart(repository, version, packed, provenance) {
      const config = { mediaType: "application/vnd.cncf.helm.config.v1+json", content: Buffer.from("{}") };
      const chart = { mediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", content: packed };
      const provenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov";
      const layers = provenance === undefined ? [chart] : [chart, { mediaType: provenanceType, content: provenance }];
      return registry.push(repository, version.replaceAll("+", "_"), { config, layers });
    },
    putManifest: (repository, tag, bytes, mediaType = manifestType) =>
      keepManifest(repository, tag, { mediaType, bytes }),
    stop: () => server.stop(),
  };
  return registry;
}

interface Answer {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly isHead?: boolean;
}

function answer(
  response: ServerResponse,
  status: number,
  { headers = {}, body = "", isHead = false }: Answer = {},
): void {
  response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(isHead ? undefined : body);
}

function basicOf({ username, password }: NonNullable<RegistryServerOptions["login"]>): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function of<Value>(all: Map<string, Map<string, Value>>, name: string): Map<string, Value> {
  const found = all.get(name) ?? new Map<string, Value>();
  all.set(name, found);
  return found;
}
