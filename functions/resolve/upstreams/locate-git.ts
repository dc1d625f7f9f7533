import type { LocateUpstream } from "#functions/resolve/upstreams/upstream.ts";
import { verifyGit } from "#shared/adapters/signatures/verify-git.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { GitUpstream } from "#shared/fleet/kinds/source.ts";
import type { GitRef, GitRemote, GitRepository } from "#shared/ports.ts";
import {
  breakTie,
  commitIn,
  formatRevision,
  nameInKind,
  prefixesOf,
  type ResolvedReference,
  resolveReference,
} from "#shared/source/git-reference.ts";

/** Each of these needs a fetch of its own. */
const maxTiedTags = 20;

type Reference = GitUpstream["ref"];

/** Finds the commit of the reference with one listing. */
export const locateGit: LocateUpstream<GitUpstream> = async (spec, { signedIn, timeLeftMs, revision }, ports) => {
  const { git, clock } = ports;
  // The URL is parsed once: a second parser could read another host than the one that the secret is for.
  const url = new URL(spec.url).href;
  const inRepository = <T>(work: (repository: GitRepository) => Promise<T>): Promise<T> =>
    signedIn((credentials) => work({ url, timeLeftMs, ...defined({ credentials }) }));
  const ref = revision === undefined ? spec.ref : { commit: commitIn(revision) };
  const { reference, listed } = await inRepository((repository) => referenceIn(ref, repository, git));
  // The files of a former revision are compared with its digest, so that they are those that were verified then.
  const verify = revision === undefined ? spec.verify : undefined;
  const tag = verify === undefined || verify.mode === "HEAD" ? undefined : tagIn(listed, reference);
  return {
    revision: revision ?? formatRevision(reference),
    ...defined({ tag }),
    what: `commit ${reference.commit} of ${url}`,
    async fetch({ paths, ignore }) {
      // Without paths: nothing of a commit is asked for before it is verified.
      const verified =
        verify === undefined
          ? undefined
          : await inRepository(async (repository) => {
              const signed = await git.fetchTree(repository, { oid: tag ?? reference.commit, paths: [] });
              return verifyGit({ url, reference, ...signed }, verify, clock.now());
            });
      const { commit, files } = await inRepository((repository) =>
        git.fetchTree(repository, { oid: reference.commit, paths, ...defined({ ignore }) }),
      );
      const { authorName, authorEmail, committedAt } = commit;
      return {
        files,
        title: commit.subject,
        author: `${authorName} <${authorEmail}>`,
        committedAt,
        ...defined({ verified }),
      };
    },
  };
};

interface Found {
  readonly reference: ResolvedReference;
  readonly listed: readonly GitRef[];
}

/** Id of the tag itself, if it is one, otherwise of the commit that a lightweight tag names. */
function tagIn(listed: readonly GitRef[], { name = "", commit }: ResolvedReference): string {
  return listed.find(({ ref }) => ref === `refs/tags/${nameInKind(name)}`)?.oid ?? commit;
}

async function referenceIn(ref: Reference, repository: GitRepository, git: GitRemote): Promise<Found> {
  const prefixes = prefixesOf(ref);
  const listed = prefixes.length === 0 ? [] : await git.listRefs(repository, prefixes);
  const resolution = resolveReference(ref, listed);
  if (resolution.kind === "resolved") return { reference: resolution.reference, listed };
  if (resolution.kind === "missing") throw notFound(`${repository.url}: ${resolution.message}`);
  const { tags } = resolution;
  if (tags.length > maxTiedTags) {
    const [first] = tags;
    const found = `${tags.length} tags are the same version as ${first?.name}; at most ${maxTiedTags} are compared`;
    throw notFound(`${repository.url}: ${found}; delete the others, or name one in spec.git.ref.tag`);
  }
  const dated = [];
  for (const tag of tags) {
    const { commit } = await git.fetchTree(repository, { oid: tag.commit, paths: [] });
    dated.push({ ...tag, committedAt: commit.committedAt });
  }
  const chosen = ref === undefined ? undefined : breakTie(ref, dated);
  if (chosen === undefined) throw notFound(`${repository.url}: none of its tags can be chosen`);
  return { reference: chosen, listed };
}

function notFound(message: string): StarlingError {
  return new StarlingError(message, { code: "GitRefNotFound", retry: "permanent" });
}
