/** Access to the git server of this machine, for `git` and for Sources. */
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

/** The name of the secret for Sources of repositories on this machine. */
export function gitSecretName(installation = "starling"): string {
  return `${installation}/git/local`;
}

/** @param origin - the origin of the git server. */
export function gitSecret(origin: string, credentials: GitCredentials): string {
  return JSON.stringify({ host: new URL(origin).host, ...credentials });
}

interface GitFiles {
  readonly origin: string;
  readonly credentials: GitCredentials;
  /** The certificate authority in PEM. */
  readonly authority: string;
}

/**
 * Writes a git configuration that gives access, readable by its owner only. `git -c include.path=FILE push URL HEAD`
 * needs nothing more. The password is not on a command line, which every user of the machine can read, and the user's
 * own credential helpers do not get it. @returns the path of the file, and the path of the authority's file.
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
  // An empty value removes the helpers that were configured before.
  await set(`credential.${origin}.helper`, "");
  await set(`credential.${origin}.helper`, `store --file ${quoted(store)}`);
  return { config, ca };
}
