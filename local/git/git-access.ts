/** Who may reach the git server of this machine, and what tells `git` and Sources how. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runGit } from "#local/git/git-command.ts";
import { quoted } from "#shared/base/shell-word.ts";

export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

const username = "starling";

export function newGitPassword(): string {
  return randomBytes(24).toString("base64url");
}

export function gitCredentials(password: string): GitCredentials {
  return { username, password };
}

/** Name of the secret that Sources of this machine's repositories name. */
export function gitSecretName(installation = "starling"): string {
  return `${installation}/git/local`;
}

/** @param origin - of the git server. */
export function gitSecret(origin: string, credentials: GitCredentials): string {
  return JSON.stringify({ host: new URL(origin).host, ...credentials });
}

interface GitFiles {
  readonly origin: string;
  readonly credentials: GitCredentials;
  /** PEM. */
  readonly authority: string;
}

/**
 * Writes what lets git in, for its owner only: `git -c include.path=FILE push URL HEAD` needs nothing else, and no password
 * is in a command line, which everybody on a machine can read. The user's own credential helpers are not told it.
 * @returns the file, and the authority's.
 */
export async function writeGitFiles(folder: string, { origin, credentials, authority }: GitFiles) {
  const config = join(folder, "gitconfig");
  const store = join(folder, "git-credentials");
  const ca = join(folder, "git-ca.pem");
  const known = new URL(origin);
  known.username = credentials.username;
  known.password = credentials.password;
  await Promise.all([
    writeFile(config, "", { mode: 0o600 }),
    writeFile(store, `${known.href}\n`, { mode: 0o600 }),
    writeFile(ca, authority, { mode: 0o600 }),
  ]);
  const set = (name: string, value: string) => runGit(["config", "--file", config, "--add", name, value]);
  await set(`http.${origin}/.sslCAInfo`, ca);
  // An empty one takes away those that came before.
  await set(`credential.${origin}.helper`, "");
  await set(`credential.${origin}.helper`, `store --file ${quoted(store)}`);
  return { config, ca };
}
