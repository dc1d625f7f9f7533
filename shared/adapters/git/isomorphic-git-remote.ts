import { Errors, listServerRefs, type ServerRef } from "isomorphic-git";
import { UploadPack } from "#shared/adapters/git/fetch-pack.ts";
import { FetchedObjects, fetchPart } from "#shared/adapters/git/fetch-part.ts";
import { GitHttp } from "#shared/adapters/git/git-http.ts";
import {
  defaultGitLimits,
  fewerRefs,
  type GitLimits,
  gitTooLarge,
  malformedGitAnswer,
} from "#shared/adapters/git/git-limits.ts";
import { parseCommit, taggedObject, treeOf } from "#shared/adapters/git/git-objects.ts";
import { GitSsh } from "#shared/adapters/git/git-ssh.ts";
import type { GitTransport } from "#shared/adapters/git/git-transport.ts";
import { Pace } from "#shared/adapters/git/pace.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { readFiles } from "#shared/adapters/git/read-files.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import { authorization, tlsOf } from "#shared/adapters/net/authorization.ts";
import { certificateHint, isCertificateRefused } from "#shared/adapters/net/certificate-hint.ts";
import { secondsLeft } from "#shared/adapters/net/seconds-left.ts";
import { defined } from "#shared/base/defined.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitRef, GitRemote, GitRepository, GitTree } from "#shared/ports.ts";

export interface IsomorphicGitRemoteOptions {
  readonly rules: AddressRules;
  readonly ca?: string;
  readonly limits?: Partial<GitLimits>;
}

type Desired = Parameters<GitRemote["fetchTree"]>[1];

/** More tags of tags than anyone has. They are read one by one. */
const maxTagDepth = 10;

/**
 * Git over HTTPS and SSH without a `git` program, which Lambda's image does not have. isomorphic-git lists references (protocol
 * v2: a few hundred bytes). It does not fetch: it would unpack any pack without a limit or a pause, and take 57 s for
 * 20,000 files. Here a pack is read in memory within `GitLimits`, so that a killed function leaves nothing on disk.
 */
export class IsomorphicGitRemote implements GitRemote {
  readonly #options: IsomorphicGitRemoteOptions;
  readonly #limits: GitLimits;

  constructor(options: IsomorphicGitRemoteOptions) {
    this.#options = options;
    this.#limits = { ...defaultGitLimits, ...options.limits };
  }

  async listRefs(repository: GitRepository, prefixes: readonly string[]): Promise<readonly GitRef[]> {
    const refs = await this.#list(repository, commonPrefix(prefixes));
    const desired = refs.filter(({ ref }) => prefixes.some((prefix) => ref.startsWith(prefix)));
    if (desired.length > 0) return desired;
    const all = refs.length > 0 ? refs : await this.#list(repository, "refs/");
    if (all.length === 0) {
      throw new StarlingError(`${repository.url} is empty: it has no branch and no tag; push a commit to it`, {
        code: "EmptyGitRepository",
        retry: "permanent",
      });
    }
    return [];
  }

  async #list(repository: GitRepository, prefix: string): Promise<GitRef[]> {
    const { maxRefs } = this.#limits;
    const refs = await this.#through(repository, this.#secondsFor(repository), (transport) =>
      listServerRefs({
        http: transport,
        url: transport.url,
        headers: authorization(repository.credentials),
        prefix,
        symrefs: true,
        peelTags: true,
      }),
    );
    if (refs.length > maxRefs) {
      throw gitTooLarge(`${repository.url} lists ${refs.length} references; at most ${maxRefs} are read`, fewerRefs);
    }
    const desired = refs.filter(({ ref }) => typeof ref === "string" && ref.startsWith(prefix));
    return desired.map((ref) => checkedRef(repository, ref, this.#limits));
  }

  async fetchTree(repository: GitRepository, desired: Desired): Promise<GitTree> {
    const limits = this.#limits;
    const timeoutSeconds = this.#secondsFor(repository);
    const reading = { limits, pace: new Pace(timeoutSeconds) };
    return this.#through(repository, timeoutSeconds, async (transport) => {
      const remote = await UploadPack.open({
        transport,
        url: repository.url,
        headers: authorization(repository.credentials),
        limits,
      });
      const objects = await objectsOf(remote, desired, reading);
      const oid = await peeled(objects, desired.oid);
      const commit = await objects.read(oid, "commit");
      const tree = treeOf(commit);
      const { paths, ignore } = desired;
      const files = paths.length === 0 ? [] : await readFiles({ objects, tree, paths, ignore, reading });
      const tag = oid === desired.oid ? {} : { tag: await objects.read(desired.oid, "tag") };
      return { commit: parseCommit(oid, commit), raw: { commit, ...tag }, files };
    });
  }

  #secondsFor({ timeLeftMs }: GitRepository): number {
    return secondsLeft(this.#limits.timeoutSeconds, timeLeftMs);
  }

  async #through<Result>(
    repository: GitRepository,
    timeoutSeconds: number,
    work: (transport: GitTransport) => Promise<Result>,
  ): Promise<Result> {
    const transport = this.#transport(repository, timeoutSeconds);
    try {
      return await work(transport);
    } catch (error) {
      throw error instanceof StarlingError ? error : translate(repository, error);
    } finally {
      transport.close();
    }
  }

  #transport({ url, credentials }: GitRepository, timeoutSeconds: number): GitTransport {
    const { rules, ca } = this.#options;
    const options = { rules, timeoutSeconds, limits: this.#limits };
    if (url.startsWith("ssh:")) return new GitSsh({ url, credentials }, options);
    const prefix = credentials?.kind === "ssh" ? undefined : credentials?.prefix;
    return new GitHttp(url, { ...options, ...defined({ ca, prefix, tls: tlsOf(credentials) }) });
  }
}

/** Fetches what is needed of a commit, or all of it where the server can send only whole commits. */
async function objectsOf(
  remote: UploadPack,
  { oid, paths, ignore }: Desired,
  reading: PackReading,
): Promise<FetchedObjects> {
  // Most files of a whole repository may be ignored.
  if (remote.isPartial && paths.length > 0 && (!paths.includes(".") || ignore !== undefined)) {
    const treeIn = async (objects: FetchedObjects) => treeOf(await objects.read(await peeled(objects, oid), "commit"));
    const part = await fetchPart(remote, { oid, paths, ignore, reading, treeIn });
    if (part !== undefined) return part;
  }
  const objects = new FetchedObjects(reading);
  await objects.add(await remote.fetch({ commit: oid, depth: paths.length === 0 ? "commit" : "files" }));
  return objects;
}

const oidPattern = /^[0-9a-f]{40}$/;
/** The rules of git check-ref-format that matter where a name is shown. */
const refPattern = /^[^\p{Cc} ~^:?*[\\]+$/u;

/** A server's text becomes a revision, which is shown and stored in many rows. */
function checkedRef({ url }: GitRepository, ref: ServerRef, limits: GitLimits): GitRef {
  const { oid, peeled, target } = ref;
  const shown = excerpt(ref.ref, maxShownName);
  for (const name of [ref.ref, ...(target === undefined ? [] : [target])]) {
    const size = Buffer.byteLength(name);
    if (size > limits.maxRefNameBytes) {
      const found = `${url} has a reference with a name of ${size} bytes, ${excerpt(name, maxShownName)}`;
      throw gitTooLarge(`${found}; at most ${limits.maxRefNameBytes} are taken`, fewerRefs);
    }
    if (!refPattern.test(name)) throw malformedGitAnswer(`${url} lists ${shown}, which is not the name of a reference`);
  }
  if (/^[0-9a-f]{64}$/.test(oid)) {
    const message = `${url} is a repository with SHA-256 objects, which Starling does not support; use a repository with SHA-1`;
    throw new StarlingError(message, { code: "GitOperationFailed", retry: "permanent" });
  }
  for (const id of [oid, peeled ?? oid]) {
    if (!oidPattern.test(id)) throw malformedGitAnswer(`${url} lists ${shown} without an object id`);
  }
  return {
    ref: ref.ref,
    oid,
    ...defined({ peeled, target }),
  };
}

const maxShownName = 60;

/** The commit to which a tag points, directly or through other tags. */
async function peeled(objects: FetchedObjects, oid: string): Promise<string> {
  let at = oid;
  for (let depth = 0; depth <= maxTagDepth; depth++) {
    const type = objects.typeOf(at);
    if (type === "tag") {
      at = taggedObject(await objects.read(at, "tag"));
      continue;
    }
    if (type === undefined || type === "commit") return at;
    throw new StarlingError(`${oid} is a ${type}, but a commit is expected; correct spec.git.ref`, {
      code: "GitRefNotFound",
      retry: "permanent",
    });
  }
  throw gitTooLarge(`${oid} is a tag that leads through more than ${maxTagDepth} other tags`, "tag the commit itself");
}

function commonPrefix(prefixes: readonly string[]): string {
  let common = prefixes[0] ?? "";
  for (const prefix of prefixes) while (!prefix.startsWith(common)) common = common.slice(0, -1);
  return common;
}

/** A server's text can be as long as its headers. */
const maxReason = 300;

function translate({ url, credentials }: GitRepository, error: unknown): StarlingError {
  const status = error instanceof Errors.HttpError ? error.data.statusCode : undefined;
  if (status === 401 || status === 403) {
    const remedy =
      credentials === undefined
        ? "it needs credentials, or does not exist; set spec.git.credentials"
        : "the credentials are wrong or may not read it; renew the secret";
    return failed(`${url} refused access (HTTP ${status}): ${remedy}`, "GitAuthenticationFailed", error);
  }
  if (status === 404 || status === 410) {
    const remedy = "check spec.git.url, and whether the credentials may see it";
    return failed(`${url} was not found (HTTP ${status}): ${remedy}`, "GitNotFound", error);
  }
  if (error instanceof Errors.NotFoundError) {
    return failed(`${url}: ${excerpt(error.message, maxReason)}`, "GitRefNotFound", error);
  }
  if (error instanceof Errors.SmartHttpError) {
    return failed(`${url} does not answer like a git server; check spec.git.url`, "GitOperationFailed", error);
  }
  const reason = excerpt(errorMessage(error), maxReason);
  if (isCertificateRefused(error)) {
    const remedy = 'renew "certificate" in the secret, or use kind: tls';
    return failed(
      `${url} refuses the client's certificate, or none: ${reason}; ${remedy}`,
      "GitAuthenticationFailed",
      error,
    );
  }
  return new StarlingError(`${url} could not be fetched: ${reason}${certificateHint(error)}`, {
    code: "GitOperationFailed",
    retry: "transient",
    cause: error,
  });
}

function failed(message: string, code: ErrorCode, cause: unknown): StarlingError {
  return new StarlingError(message, { code, retry: "permanent", cause });
}
