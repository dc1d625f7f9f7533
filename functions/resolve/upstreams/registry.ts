/** Reads an OCI registry by the distribution specification: tags, digests, manifests and blobs of one repository. */
import { refusedRequest, upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { tlsOf } from "#shared/adapters/net/authorization.ts";
import { defined } from "#shared/base/defined.ts";
import { sha256 } from "#shared/base/digest.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import type { StarlingError } from "#shared/base/errors.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { isToken } from "#shared/fleet/bound-secret.ts";
import type { HttpRemote, RemoteAnswer, SourceCredentials } from "#shared/ports.ts";
import { mayAskFor, parseChallenge } from "#shared/source/oci/challenge.ts";
import {
  type Descriptor,
  digestPattern,
  indexTypes,
  manifestTypes,
  type OciManifest,
  readIndex,
  readManifest,
} from "#shared/source/oci/manifest.ts";
import type { OciRepository } from "#shared/source/oci/oci-url.ts";

const mib = 1024 * 1024;
const maxManifestBytes = 4 * mib;
const maxListingBytes = 8 * mib;
const maxTags = 100_000;
/** A registry may give fewer tags in a page than were asked for, and may never end. */
const maxPages = 1000;
const tagsInPage = 1000;
const maxReferrerPages = 10;
/** Answers of registries that do not know the listing of referrers. */
const withoutReferrers: ReadonlySet<number> = new Set([400, 404, 405, 406]);

export interface RegistryUse {
  /** As in the Source, for errors. */
  readonly url: string;
  /** Field of the upstream, such as `spec.oci`. */
  readonly at: string;
  readonly repository: OciRepository;
  readonly credentials: SourceCredentials | undefined;
  readonly timeLeftMs: () => number;
}

interface Question {
  readonly method?: "GET" | "HEAD";
  readonly path: string;
  readonly accept?: string;
  readonly maxBytes: number;
}

export class Registry {
  readonly #use: RegistryUse;
  readonly #http: HttpRemote;
  /** The registry gets it with each question. */
  #login: SourceCredentials | undefined;

  constructor(use: RegistryUse, http: HttpRemote) {
    this.#use = use;
    this.#login = this.#connection;
    this.#http = http;
  }

  /** Every tag of the repository. */
  async tags(): Promise<readonly string[]> {
    const tags: string[] = [];
    const pages = new Set<string>();
    let path: string | undefined = `/v2/${this.#use.repository.name}/tags/list?n=${tagsInPage}`;
    for (let page = 0; path !== undefined; page++) {
      if (pages.has(path)) throw this.#failed("UpstreamUnavailable", "lists its tags in a circle; ask who runs it");
      pages.add(path);
      if (page === maxPages) throw this.#failed("UpstreamTooLarge", `lists its tags in more than ${maxPages} pages`);
      const answer = await this.#ask({ path, maxBytes: maxListingBytes });
      if (answer.status !== 200) throw this.#refused(answer, "the list of tags");
      tags.push(...this.#tagsIn(answer));
      if (tags.length > maxTags)
        throw this.#failed("UpstreamTooLarge", `has more than ${maxTags} tags; ${this.#remedyForTags()}`);
      path = this.#nextPage(answer);
    }
    return tags;
  }

  /** The digest of a tag. @throws StarlingError `UpstreamNotFound` */
  async digestOf(tag: string): Promise<string> {
    const path = this.#manifestPath(tag);
    const answer = await this.#ask({ method: "HEAD", path, accept: accepted, maxBytes: 0 });
    if (answer.status !== 200) throw this.#refused(answer, `the tag ${tag}`);
    const digest = answer.headers["docker-content-digest"];
    if (digest !== undefined && digestPattern.test(digest)) return digest;
    return sha256(await this.#manifestAt(tag));
  }

  /** The manifest with this digest, and its bytes. */
  async manifest(digest: string): Promise<OciManifest & { readonly bytes: Uint8Array }> {
    const bytes = await this.#manifestAt(digest);
    const found = sha256(bytes);
    if (found !== digest) {
      throw this.#failed("ChecksumMismatch", `answers for ${digest} with a manifest of the digest ${found}`);
    }
    const manifest = readManifest(bytes);
    if (typeof manifest === "string") throw this.#failed("ArchiveInvalid", `has an artifact that ${manifest}`);
    return { ...manifest, bytes };
  }

  /** The manifest or index of a tag; undefined if there is no such tag. */
  async tagged(tag: string): Promise<Uint8Array | undefined> {
    const answer = await this.#ask({ path: this.#manifestPath(tag), accept: accepted, maxBytes: maxManifestBytes });
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw this.#refused(answer, `the tag ${tag}`);
    return answer.body;
  }

  /** The manifests of a type that refer to a manifest; undefined if the registry has no such listing. */
  async referrers(digest: string, artifactType: string): Promise<readonly Descriptor[] | undefined> {
    const found: Descriptor[] = [];
    const query = `?artifactType=${encodeURIComponent(artifactType)}`;
    let path: string | undefined = `/v2/${this.#use.repository.name}/referrers/${digest}${query}`;
    for (let page = 0; path !== undefined; page++) {
      if (page === maxReferrerPages) {
        throw this.#failed("UpstreamTooLarge", `lists what refers to ${digest} in more than ${maxReferrerPages} pages`);
      }
      const answer = await this.#ask({ path, accept: indexTypes[0], maxBytes: maxManifestBytes });
      if (page === 0 && withoutReferrers.has(answer.status)) return undefined;
      if (answer.status !== 200) throw this.#refused(answer, `what refers to ${digest}`);
      const listed = readIndex(answer.body);
      if (listed === undefined) return undefined;
      found.push(...listed);
      path = this.#nextPage(answer);
    }
    return found;
  }

  async blob({ digest, size }: Descriptor, maxBytes: number): Promise<Uint8Array> {
    if (size > maxBytes)
      throw this.#failed("UpstreamTooLarge", `has a layer of ${size} bytes; at most ${maxBytes} are taken`);
    const path = `/v2/${this.#use.repository.name}/blobs/${digest}`;
    const answer = await this.#ask({ path, accept: "*/*", maxBytes: size });
    if (answer.status !== 200) throw this.#refused(answer, `the layer ${digest}`);
    const found = sha256(answer.body);
    if (found === digest) return answer.body;
    throw this.#failed("ChecksumMismatch", `answers for ${digest} with a layer of the digest ${found}`);
  }

  #manifestPath(reference: string): string {
    return `/v2/${this.#use.repository.name}/manifests/${reference}`;
  }

  async #manifestAt(reference: string): Promise<Uint8Array> {
    const answer = await this.#ask({
      path: this.#manifestPath(reference),
      accept: accepted,
      maxBytes: maxManifestBytes,
    });
    if (answer.status !== 200) throw this.#refused(answer, `the manifest ${reference}`);
    return answer.body;
  }

  #remedyForTags(): string {
    return this.#use.at === "spec.oci"
      ? "name one in spec.oci.ref.tag, or a digest"
      : "delete old ones, or publish the chart to a repository of its own";
  }

  /** The path of the next page. A registry behind a proxy may write `http` for itself; what counts is its host. */
  #nextPage({ headers }: RemoteAnswer): string | undefined {
    const { origin } = this.#use.repository;
    const [, target] = /<([^>]+)>\s*;\s*rel="?next"?/.exec(headers.link ?? "") ?? [];
    if (target === undefined) return undefined;
    const next = URL.canParse(target, origin) ? new URL(target, origin) : undefined;
    if (next?.host === new URL(origin).host) return `${next.pathname}${next.search}`;
    // A shorter list would choose another version.
    const where = next === undefined ? "an address that is none" : `${next.host}, which is another host`;
    throw this.#failed("UpstreamUnavailable", `has a list that goes on at ${where}; ask who runs it`);
  }

  #tagsIn({ body }: RemoteAnswer): readonly string[] {
    try {
      const listing: unknown = JSON.parse(new TextDecoder().decode(body));
      const tags = isJsonObject(listing) ? listing.tags : undefined;
      // A repository without tags has null here.
      if (tags === null) return [];
      if (Array.isArray(tags) && tags.every((tag) => typeof tag === "string")) return tags;
    } catch {
      // As below.
    }
    throw this.#failed("UpstreamUnavailable", "lists its tags in a form that no registry has");
  }

  /** Signs in when the registry asks for it, once. */
  async #ask(question: Question): Promise<RemoteAnswer> {
    const first = await this.#send(question);
    if (first.status !== 401) return first;
    await this.#signIn(first);
    return this.#send(question);
  }

  #send({ method = "GET", path, accept, maxBytes }: Question): Promise<RemoteAnswer> {
    const { repository, timeLeftMs } = this.#use;
    const url = `${repository.origin}${path}`;
    return this.#http.ask({
      url,
      method,
      headers: defined({ accept }),
      credentials: this.#login,
      maxBytes,
      timeLeftMs,
    });
  }

  /** The secret's prefix is of `oci://`, and only the Source's own repository is asked for. */
  get #credentials(): SourceCredentials | undefined {
    const { credentials } = this.#use;
    if (credentials === undefined || credentials.kind === "ssh") return credentials;
    const { prefix: _checked, ...login } = credentials;
    return login;
  }

  /** A certificate is shown in each handshake, and a token is asked for afterwards. */
  get #connection(): SourceCredentials | undefined {
    const tls = tlsOf(this.#credentials);
    return tls === undefined ? undefined : { kind: "tls", tls };
  }

  async #signIn({ headers }: RemoteAnswer): Promise<void> {
    const { repository, at } = this.#use;
    const credentials = this.#credentials;
    const challenge = parseChallenge(headers["www-authenticate"]);
    if (challenge === undefined || challenge.scheme === "basic" || credentials?.kind === "bearer") {
      this.#login = credentials ?? this.#login;
      return;
    }
    const realm = new URL(challenge.realm);
    if (credentials?.kind === "basic" && !mayAskFor(repository.origin, realm.href, credentials.tokenHosts ?? [])) {
      const what = `wants the credentials to go to ${realm.host}, which is another host; if that is right, add`;
      throw this.#failed(
        "SecretMismatch",
        `${what} "tokenHosts": ["${realm.host}"] to the secret of ${at}.credentials`,
      );
    }
    realm.searchParams.set("scope", `repository:${repository.name}:pull`);
    if (challenge.service !== undefined) realm.searchParams.set("service", challenge.service);
    const { timeLeftMs } = this.#use;
    const answer = await this.#http.ask({
      url: realm.href,
      headers: { accept: "application/json" },
      credentials: realm.host === new URL(repository.origin).host ? credentials : withoutCertificate(credentials),
      maxBytes: mib,
      timeLeftMs,
    });
    if (answer.status !== 200) throw this.#refused(answer, "a token");
    this.#login = { ...this.#connection, kind: "bearer", token: this.#tokenIn(answer) };
  }

  #tokenIn({ body }: RemoteAnswer): string {
    try {
      const { token, access_token: other } = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
      const found = token ?? other;
      if (isToken(found)) return found;
    } catch {
      // As below.
    }
    throw this.#failed("AuthenticationFailed", "gives no token that Starling can use");
  }

  #refused({ status }: RemoteAnswer, what: string): StarlingError {
    const { credentials, at, url } = this.#use;
    return refusedRequest({ what: `${what} of ${url}`, status, at, hasCredentials: credentials !== undefined });
  }

  #failed(code: ErrorCode, what: string): StarlingError {
    return upstreamError(code, `${this.#use.url} ${what}`);
  }
}

/** A client's certificate goes to the registry alone; a private authority may be that of its token server, too. */
function withoutCertificate(credentials: SourceCredentials | undefined): SourceCredentials | undefined {
  if (credentials === undefined || credentials.kind === "ssh") return credentials;
  const { tls, ...login } = credentials;
  return tls?.ca === undefined ? login : { ...login, tls: { ca: tls.ca } };
}

const accepted = [...manifestTypes, ...indexTypes].join(", ");
