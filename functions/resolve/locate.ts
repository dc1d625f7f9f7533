import { isDeepStrictEqual } from "node:util";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { GitRemote, GitRepository, SecretReader } from "#shared/ports.ts";
import { breakTie, prefixesOf, type ResolvedReference, resolveReference } from "#shared/source/git-reference.ts";

/** Each of these needs a fetch of its own. */
const maxTiedTags = 20;

export interface LocatePorts {
  readonly git: GitRemote;
  readonly secrets: SecretReader;
}

export interface Located {
  readonly repository: GitRepository;
  readonly reference: ResolvedReference;
}

/** Finds the commit of the reference with one listing. @param timeLeftMs - milliseconds that git may take. */
export async function locate(row: SourceRow, timeLeftMs: () => number, ports: LocatePorts): Promise<Located> {
  const credentials = await readCredentials(row, ports.secrets);
  const located = async (given: typeof credentials): Promise<Located> => {
    // The URL is parsed once: a second parser could read another host than the one that the secret is for.
    const url = new URL(row.spec.git.url).href;
    const repository = { url, timeLeftMs, ...defined({ credentials: given }) };
    return { repository, reference: await referenceIn(row, repository, ports) };
  };
  try {
    return await located(credentials);
  } catch (error) {
    if (!(error instanceof StarlingError && error.code === "GitAuthenticationFailed")) throw error;
    const renewed = await readCredentials(row, ports.secrets, { fresh: true });
    if (isDeepStrictEqual(renewed, credentials)) throw error;
    return located(renewed);
  }
}

async function referenceIn(row: SourceRow, repository: GitRepository, ports: LocatePorts): Promise<ResolvedReference> {
  const ref = row.spec.git.ref;
  const prefixes = prefixesOf(ref);
  const listed = prefixes.length === 0 ? [] : await ports.git.listRefs(repository, prefixes);
  const resolution = resolveReference(ref, listed);
  if (resolution.kind === "resolved") return resolution.reference;
  if (resolution.kind === "missing") throw notFound(`${repository.url}: ${resolution.message}`);
  const { tags } = resolution;
  if (tags.length > maxTiedTags) {
    const [first] = tags;
    const found = `${tags.length} tags are the same version as ${first?.name}; at most ${maxTiedTags} are compared`;
    throw notFound(`${repository.url}: ${found}; delete the others, or name one in spec.git.ref.tag`);
  }
  const dated = [];
  for (const tag of tags) {
    const { commit } = await ports.git.fetchTree(repository, { oid: tag.commit, paths: [] });
    dated.push({ ...tag, committedAt: commit.committedAt });
  }
  const chosen = ref === undefined ? undefined : breakTie(ref, dated);
  if (chosen === undefined) throw notFound(`${repository.url}: none of its tags can be chosen`);
  return chosen;
}

function notFound(message: string): StarlingError {
  return new StarlingError(message, { code: "GitRefNotFound", retry: "permanent" });
}
