/**
 * Where a forge shows a commit, and what is between two, by the patterns of their addresses: GitHub and its Enterprise
 * Server, GitLab, Bitbucket Cloud, Gitea and Forgejo. A host of another name has none: nobody is asked what it is.
 */
export interface ForgeLinks {
  readonly commit: string;
  /** What came after the commit before; absent where none is named. */
  readonly compare?: string;
}

interface Forge {
  readonly hosts: RegExp;
  readonly commit: (commit: string) => string;
  readonly compare: (from: string, to: string) => string;
}

const forges: readonly Forge[] = [
  {
    hosts: /^(?:www\.)?github\.com$|^github\.|^ghe\./,
    commit: (commit) => `commit/${commit}`,
    compare: (from, to) => `compare/${from}...${to}`,
  },
  {
    hosts: /^gitlab\./,
    commit: (commit) => `-/commit/${commit}`,
    compare: (from, to) => `-/compare/${from}...${to}`,
  },
  {
    hosts: /^bitbucket\.org$/,
    commit: (commit) => `commits/${commit}`,
    compare: (from, to) => `branches/compare/${to}..${from}`,
  },
  {
    hosts: /^codeberg\.org$|^gitea\.|^forgejo\./,
    commit: (commit) => `commit/${commit}`,
    compare: (from, to) => `compare/${from}...${to}`,
  },
];

/** The commit of a revision: `9f2c1ab…` of `main@sha1:9f2c1ab…`. */
export function commitOf(revision: string): string | undefined {
  return /(?:^|@)sha1:([0-9a-f]{7,40})$/.exec(revision)?.[1];
}

/** @param url - of the repository, as a Source has it. @returns undefined where it is nobody's that is known. */
export function forgeLinks(url: string, to: string, from?: string): ForgeLinks | undefined {
  const repository = URL.parse(url);
  const forge = forges.find(({ hosts }) => hosts.test(repository?.hostname ?? ""));
  if (repository === null || forge === undefined) return undefined;
  // Never the user or the password that the address may have; what is not the forge's own port is not its pages' either.
  const port = repository.protocol === "https:" && repository.port !== "" ? `:${repository.port}` : "";
  const path = repository.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const pages = `https://${repository.hostname}${port}${path}`;
  const compare = from === undefined || from === to ? undefined : `${pages}/${forge.compare(from, to)}`;
  return { commit: `${pages}/${forge.commit(to)}`, ...(compare === undefined ? {} : { compare }) };
}
