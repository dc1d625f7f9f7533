/**
 * Links to a commit, and to the difference between two commits, by the address patterns of GitHub (also Enterprise
 * Server), GitLab, Bitbucket Cloud, Gitea and Forgejo. The host's name decides; no request is made. An unknown host has
 * no links.
 */
export interface ForgeLinks {
  readonly commit: string;
  /** The changes since the previous commit; absent when no previous commit is given. */
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

/** @param url - of the repository, as the Source's spec gives it. @returns undefined when the forge is unknown. */
export function forgeLinks(url: string, to: string, from?: string): ForgeLinks | undefined {
  const repository = URL.parse(url);
  const forge = forges.find(({ hosts }) => hosts.test(repository?.hostname ?? ""));
  if (repository === null || forge === undefined) return undefined;
  // The links never contain the user or the password of the address. A port of another scheme than https is not the
  // port of the web pages.
  const port = repository.protocol === "https:" && repository.port !== "" ? `:${repository.port}` : "";
  const path = repository.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const pages = `https://${repository.hostname}${port}${path}`;
  const compare = from === undefined || from === to ? undefined : `${pages}/${forge.compare(from, to)}`;
  return { commit: `${pages}/${forge.commit(to)}`, ...(compare === undefined ? {} : { compare }) };
}
