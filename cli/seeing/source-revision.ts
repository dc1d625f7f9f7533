/** A Source at another revision than its current one, fetched with the caller's rights and the code of `resolve`. */

import { askGit, whyNotHere } from "#cli/seeing/ask-git.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { type ArtifactAbout, artifactOf, type LocalArtifact } from "#cli/seeing/local-artifact.ts";
import { storedArtifact } from "#cli/seeing/stored-files.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import { artifactsPath, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ArtifactItem } from "#shared/fleet/api/artifact-item.ts";
import type { RevisionItem } from "#shared/fleet/api/history-item.ts";
import {
  foldersOf,
  type HelmUpstream,
  type SourceSpec,
  type Upstream,
  upstreamOf,
} from "#shared/fleet/kinds/source.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { GitRemote, GitRepository } from "#shared/ports.ts";
import { namesTags } from "#shared/source/git-ref-schema.ts";
import {
  commitIn,
  formatRevision,
  type ResolvedReference,
  referencesNamed,
  resolveNamed,
} from "#shared/source/git-reference.ts";
import { isWithin } from "#shared/source/tree-listing.ts";

/** More revisions than a Source has in the 30 days for which they are kept. */
const revisionsKept = 10_000;

export interface SourceRevisionQuery {
  /** The group or Sync that uses the Source. */
  readonly owner: Owner;
  /** Name of the Source. */
  readonly name: string;
  readonly upstream: Upstream;
  readonly paths: readonly string[];
  /** `spec.ignore` */
  readonly ignore?: string;
  /**
   * A branch, a tag, a whole reference, a commit, or the form of `starling history`: `main@sha1:<commit>`. Without git, the
   * whole revision, the part before or after its `@`, or the beginning of its digest.
   */
  readonly revision: string;
}

/**
 * @param from - where the Source is known. If git does not give a commit that an installation's Source had, the stored artifact is used.
 * @throws CliFailure when the revision does not exist or cannot be fetched from here, with what to do.
 */
export async function readRevision(
  session: Session,
  asked: SourceRevisionQuery,
  from: Changes["from"],
): Promise<LocalArtifact> {
  const { upstream } = asked;
  if (upstream.kind !== "git" || upstream.url.startsWith("ssh:")) return withoutGit(session, asked, from);
  try {
    return await fetchedFromGit(session, { ...asked, url: new URL(upstream.url).href });
  } catch (error) {
    const isSame = sameCommit(asked.revision);
    const stored =
      from === "installation" && isSame !== undefined ? await storedRevision(session, asked, isSame) : undefined;
    if (stored === undefined) throw error;
    session.note(
      `Source ${asked.name}: ${stored.artifact.revision} is read from the installation, because ${errorMessage(error)}`,
    );
    return stored;
  }
}

/**
 * The revision at which a template stays: from the installation, otherwise from its upstream.
 * @throws CliFailure when neither has it, with what to do.
 */
export async function readPin(
  session: Session,
  { spec, ...asked }: Omit<SourceRevisionQuery, "upstream" | "paths"> & { readonly spec: SourceSpec },
  from: Changes["from"],
): Promise<LocalArtifact> {
  const paths = foldersOf(spec);
  const { owner, name, revision } = asked;
  const { ref } = spec.git ?? {};
  if (ref?.branch === revision)
    throw usageFailure(`revision ${revision} of Source ${name} is the branch that it follows`, "leave revision out");
  if (ref?.name === revision && !namesTags(ref))
    throw usageFailure(`revision ${revision} of Source ${name} is the reference that it follows`, "leave revision out");
  const item = from === "installation" ? await artifactNamed(session, asked) : undefined;
  if (item === undefined)
    return readRevision(
      session,
      { ...asked, upstream: upstreamOf(spec), paths, ...defined({ ignore: spec.ignore }) },
      from,
    );
  const files = await storedArtifact(session, { namespace: owner.namespace, name }, item.digest);
  const own = files.filter((file) => isWithin(file.path, paths));
  return artifactOf(own, aboutOf({ name, paths }, item.revision));
}

/** The artifact that the installation has of a revision; undefined if it has none. */
async function artifactNamed(
  session: Session,
  { owner, name, revision }: Pick<SourceRevisionQuery, "owner" | "name" | "revision">,
): Promise<ArtifactItem | undefined> {
  const query = { reference: revision };
  const list = { path: artifactsPath(name, owner.namespace), limit: 1, query };
  const found = await readList<ArtifactItem>(session, list).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  return found?.items[0];
}

/** A revision that the installation stored; only git over HTTPS is asked from here. */
async function withoutGit(session: Session, asked: SourceRevisionQuery, from: Changes["from"]): Promise<LocalArtifact> {
  const { name, revision, upstream } = asked;
  const isSame = (had: string) => had === revision || had.split("@").includes(revision) || isDigestOf(had, revision);
  const stored = from === "installation" ? await storedRevision(session, asked, isSame) : undefined;
  if (stored !== undefined) return stored;
  throw usageFailure(
    `Source ${name} never had the revision ${revision}, and only revisions of git over HTTPS are fetched from here (this one has ${upstream.kind === "git" ? "an SSH address" : `spec.${upstream.kind}`})`,
    upstream.kind === "helm" ? pullOf(upstream, asked) : `--source ${quoted(`${name}=FOLDER`)}`,
  );
}

/** The command that gets a version of a chart with the caller's own login, and what its folder is for. */
function pullOf({ url, chart }: HelmUpstream, { name, revision }: SourceRevisionQuery): string {
  const base = url.replace(/\/+$/, "");
  const where = base.startsWith("oci://") ? quoted(`${base}/${chart}`) : `${quoted(chart)} --repo ${quoted(base)}`;
  const [version = ""] = revision.split("@");
  const use = `then use --source ${quoted(`${name}=${chart}`)} instead of --revision`;
  return `helm pull ${where} --version ${quoted(version)} --untar   (${use})`;
}

const shortestDigest = 7;

function isDigestOf(had: string, digits: string): boolean {
  return digits.length >= shortestDigest && commitIn(had).startsWith(digits);
}

/** Whether a stored revision is of the typed commit; undefined if the text is no commit. */
function sameCommit(revision: string): ((had: string) => boolean) | undefined {
  const [, digits] = /^(?:[^@]+@)?(?:sha1:)?([0-9a-f]{7,40})$/.exec(revision) ?? [];
  return digits === undefined ? undefined : (had) => commitIn(had).startsWith(digits);
}

/** The newest stored artifact of the Source at this revision, reduced to the Source's current paths. */
async function storedRevision(
  session: Session,
  { owner, name, revision, paths }: SourceRevisionQuery,
  isSame: (had: string) => boolean,
): Promise<LocalArtifact | undefined> {
  const path = `${pathOfObject({ kind: "Source", name }, owner.namespace)}/revisions`;
  const { items } = await readList<RevisionItem>(session, { path, limit: revisionsKept });
  const had = items.filter((item) => isSame(item.revision));
  const [newest] = had;
  const commits = [...new Set(had.map((item) => commitIn(item.revision)))];
  if (newest === undefined) return undefined;
  if (commits.length > 1)
    throw usageFailure(
      `--revision ${revision} of Source ${name} is ambiguous: ${commits.join(" or ")}`,
      `--revision ${commits[0]}`,
    );
  const files = await storedArtifact(session, { namespace: owner.namespace, name }, newest.digest);
  const own = files.filter((file) => isWithin(file.path, paths));
  return artifactOf(own, aboutOf({ name, paths }, newest.revision));
}

function aboutOf({ name, paths }: Pick<SourceRevisionQuery, "name" | "paths">, revision: string): ArtifactAbout {
  return {
    paths,
    revision,
    where: revision,
    next: `starling describe source/${quoted(name)}   (shows its paths)`,
  };
}

interface GitRevisionQuery extends SourceRevisionQuery {
  readonly url: string;
}

async function fetchedFromGit(session: Session, asked: GitRevisionQuery): Promise<LocalArtifact> {
  try {
    return await askGit(session, asked.url, (git, repository) => fetched(git, repository, asked));
  } catch (error) {
    throw reported(error, asked);
  }
}

async function fetched(git: GitRemote, repository: GitRepository, asked: SourceRevisionQuery): Promise<LocalArtifact> {
  const reference = await referenceOf(git, repository, asked);
  const { paths, ignore } = asked;
  const { files } = await git.fetchTree(repository, { oid: reference.commit, paths, ...defined({ ignore }) });
  const revision = formatRevision(reference);
  return artifactOf(files, aboutOf(asked, revision));
}

async function referenceOf(
  git: GitRemote,
  repository: GitRepository,
  { name, revision }: SourceRevisionQuery,
): Promise<ResolvedReference> {
  if (/^([^@]+@)?sha1:[0-9a-f]{40}$/.test(revision)) return namedCommit(revision);
  if (/^[0-9a-f]{40}$/.test(revision)) return { commit: revision };
  const listed = await git.listRefs(repository, referencesNamed(revision));
  const found = resolveNamed(revision, listed);
  if (found.kind === "resolved") return found.reference;
  const isShort = /^[0-9a-f]{4,39}$/.test(revision);
  const hint = isShort ? "; a commit needs all of its 40 digits" : "";
  const message = found.kind === "missing" ? found.message : "";
  throw usageFailure(
    `--revision ${revision} of Source ${name}: ${message}${hint}`,
    `git ls-remote ${quoted(repository.url)}`,
  );
}

function namedCommit(revision: string): ResolvedReference {
  const at = revision.indexOf("@");
  return { ...(at < 0 ? {} : { name: revision.slice(0, at) }), commit: commitIn(revision) };
}

/** The failure of a fetch, with a folder of a clone as the remedy. */
function reported(error: unknown, { name, url, revision }: GitRevisionQuery): unknown {
  if (!(error instanceof StarlingError)) return error;
  return new CliFailure(
    `revision ${revision} of Source ${name} cannot be fetched from here: ${whyNotHere(error, url)}`,
    {
      exit: "unknown",
      next: `git worktree add ../at ${quoted(revision)}   (in a clone; then use --source ${quoted(`${name}=../at`)} instead of --revision)`,
    },
  );
}
