/** Questions of several Sources of one upstream are asked once. */
import { digestOf } from "#shared/base/digest.ts";
import { errorCode, StarlingError } from "#shared/base/errors.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { GitRef, GitRemote, GitTree, HttpRemote, RemoteAnswer, RemoteQuestion } from "#shared/ports.ts";
import { commitIn, prefixesOf } from "#shared/source/git-reference.ts";
import { isWithin } from "#shared/source/tree-listing.ts";

interface Remotes {
  readonly git: GitRemote;
  readonly http: HttpRemote;
}

/** Bytes of answers that are kept for the others: a large index, and the charts that it names. */
const maxKeptBytes = 128 * 1024 * 1024;

/** Errors of a listing that the server gives whatever is asked. */
const ofServer: ReadonlySet<string> = new Set([
  "RateLimited",
  "GitAuthenticationFailed",
  "GitNotFound",
  "AddressRefused",
]);
/** After so many Sources whose own listings failed, too, the server counts as away: each could wait for it until its limit. */
const mostFailedAlone = 2;

/** Equal for Sources that take the same revision of their upstream, and ignore the same of it. */
export function followedText({ spec }: Pick<SourceRow, "spec">): string {
  const { kind } = upstreamOf(spec);
  const { ref, chart } = { ...spec[kind] } as { readonly ref?: object; readonly chart?: string };
  return canonicalJson([chart, ref, spec.ignore]);
}

/**
 * The remotes of Sources that are polled together. An answer serves all questions that are equal to the last letter, the
 * credentials included, so that no Source gets what its own credentials would not have read. Other answers, also errors,
 * are as if each Source had asked alone.
 */
export class SharedUpstream {
  readonly #rows: readonly SourceRow[];
  readonly #remotes: Remotes;
  readonly #prefixes: readonly string[];
  readonly #listings = new Map<string, Promise<readonly GitRef[]>>();
  readonly #answers = new Map<string, Promise<RemoteAnswer>>();
  readonly #commits = new Map<string, Promise<GitTree>>();
  #keptBytes = 0;
  #failedAlone = 0;
  /** Only the last one with files, because it may be large. */
  #tree: { readonly key: string; readonly tree: Promise<GitTree> } | undefined;

  constructor(rows: readonly SourceRow[], remotes: Remotes) {
    this.#rows = rows;
    this.#remotes = remotes;
    this.#prefixes = [...new Set(rows.flatMap(({ spec }) => (spec.git === undefined ? [] : prefixesOf(spec.git.ref))))];
  }

  askedBy(row: SourceRow): Remotes {
    return {
      git: {
        listRefs: (repository, prefixes) => this.#listRefs(repository, prefixes),
        fetchTree: (repository, desired) => this.#fetchTree(row, repository, desired),
      },
      http: { ask: (question) => this.#ask(question) },
    };
  }

  async #listRefs(...[repository, prefixes]: Parameters<GitRemote["listRefs"]>): Promise<readonly GitRef[]> {
    const { git } = this.#remotes;
    const { url, credentials } = repository;
    const all = [...new Set([...this.#prefixes, ...prefixes])];
    const list = (desired: readonly string[]) =>
      remembered(this.#listings, digestOf({ url, credentials, desired }), () => git.listRefs(repository, desired));
    try {
      const listed = await list(all);
      return listed.filter(({ ref }) => prefixes.some((prefix) => ref.startsWith(prefix)));
    } catch (error) {
      // It may be about the references of another Source, or about all of them together.
      if (all.length === prefixes.length || ofServer.has(errorCode(error))) throw error;
      if (this.#failedAlone >= mostFailedAlone && errorCode(error) !== "GitTooLarge") throw error;
      try {
        return await list(prefixes);
      } catch (own) {
        this.#failedAlone++;
        throw own;
      }
    }
  }

  async #fetchTree(row: SourceRow, ...[repository, desired]: Parameters<GitRemote["fetchTree"]>): Promise<GitTree> {
    const { git } = this.#remotes;
    const { oid, paths, ignore } = desired;
    const { url, credentials } = repository;
    // A commit without files: its signature.
    const all = paths.length === 0 ? paths : this.#pathsBeside(row, desired);
    const key = digestOf({ url, credentials, oid, all, ignore });
    const fetch = () => git.fetchTree(repository, { ...desired, paths: all });
    if (paths.length === 0) return remembered(this.#commits, key, fetch);
    if (this.#tree?.key !== key) this.#tree = { key, tree: fetch() };
    try {
      const tree = await this.#tree.tree;
      return { ...tree, files: tree.files.filter(({ path }) => isWithin(path, paths)) };
    } catch (error) {
      // It may be about a path of another Source, or about all of them together.
      if (all.length === paths.length || isAboutHost(error)) throw error;
      return git.fetchTree(repository, desired);
    }
  }

  /** The paths of the Source, and of those that ignore the same, take the same revision and do not have it yet. */
  #pathsBeside(row: SourceRow, { oid, paths }: Parameters<GitRemote["fetchTree"]>[1]): readonly string[] {
    const reference = followedText(row);
    const others = this.#rows.filter((other) => followedText(other) === reference && !hasCommit(other, oid));
    return [...new Set([...paths, ...others.flatMap(({ spec }) => spec.paths)])].toSorted();
  }

  async #ask(question: RemoteQuestion): Promise<RemoteAnswer> {
    const { http } = this.#remotes;
    const { timeLeftMs: _timeLeftMs, body, headers = {}, ...asked } = question;
    if (body !== undefined || asked.method === "POST") return http.ask(question);
    const { "if-none-match": _match, "if-modified-since": _since, ...whatever } = headers;
    const whole = digestOf({ ...asked, headers: whatever });
    const known = this.#answers.get(whole);
    if (known !== undefined) return known;
    const key = digestOf({ ...asked, headers });
    return remembered(this.#answers, key, async () => {
      const answer = await http.ask(question);
      this.#keptBytes += answer.body.length;
      if (this.#keptBytes > maxKeptBytes) {
        this.#answers.clear();
        this.#keptBytes = 0;
      } else if (answer.status === 200) this.#answers.set(whole, Promise.resolve(answer));
      return answer;
    });
  }
}

/** Another question would meet the same error, perhaps after a minute. */
function isAboutHost(error: unknown): boolean {
  return error instanceof StarlingError && (error.code === "RateLimited" || error.data.silentHost !== undefined);
}

/** Whether the Source has this commit of its present spec. */
function hasCommit({ status, generation }: SourceRow, oid: string): boolean {
  const { artifact, observedGeneration, lost } = status;
  if (artifact === undefined || lost !== undefined || observedGeneration !== generation) return false;
  return commitIn(artifact.revision) === oid;
}

function remembered<T>(kept: Map<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  const known = kept.get(key);
  if (known !== undefined) return known;
  const asked = ask();
  kept.set(key, asked);
  return asked;
}
