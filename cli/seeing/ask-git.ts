import { gitLogin } from "#cli/seeing/git-login.ts";
import type { Session } from "#cli/session/session.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { readCertificates } from "#shared/adapters/git/read-certificates.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, type StarlingError } from "#shared/base/errors.ts";
import { untrustedAuthority } from "#shared/base/own-words.ts";
import type { GitRemote, GitRepository } from "#shared/ports.ts";

/** Why a repository cannot be read on this machine: the remedies of a Source do not help here. */
export function whyNotHere(error: StarlingError, url: string): string {
  const why: Readonly<Record<string, string>> = {
    GitAuthenticationFailed: `${url} refuses your credentials, or your git has none for it`,
    GitNotFound: `${url} does not exist, or you may not read it`,
  };
  const isUntrusted = error.message.includes(untrustedAuthority);
  return why[error.code] ?? (isUntrusted ? `${untrustedAuthority}; name its file in GIT_SSL_CAINFO` : error.message);
}

/** Asks a repository with the rights of the caller: without a login, and with that of their own git if it is refused. */
export async function askGit<T>(
  session: Session,
  url: string,
  work: (git: GitRemote, repository: GitRepository) => Promise<T>,
): Promise<T> {
  const ca = readCertificates(session.io.env.GIT_SSL_CAINFO);
  // The caller may connect to the same addresses as with their own git.
  const git = new IsomorphicGitRemote({ rules: clusterAddresses, ...defined({ ca }) });
  try {
    return await work(git, { url });
  } catch (error) {
    if (errorCode(error) !== "GitAuthenticationFailed") throw error;
    const credentials = await gitLogin(session.io, url);
    if (credentials === undefined) throw error;
    return work(git, { url, credentials });
  }
}
