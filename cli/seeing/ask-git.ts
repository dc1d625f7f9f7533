import { gitLogin } from "#cli/seeing/git-login.ts";
import type { Session } from "#cli/session/session.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { readCertificates } from "#shared/adapters/git/read-certificates.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode } from "#shared/base/errors.ts";
import type { GitRemote, GitRepository } from "#shared/ports.ts";

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
