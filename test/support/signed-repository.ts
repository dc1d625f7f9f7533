/** Commits and tags that git itself signs, in a repository of a local git server. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryFolder } from "#local/git/repository.ts";

/** Whether this machine has a program that signs. */
export function canSign(program: "ssh-keygen" | "gpg"): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}

export interface Signer {
  /** `ssh` or `openpgp`, as in `gpg.format`. */
  readonly format: "ssh" | "openpgp";
  /** What `user.signingkey` names. */
  readonly key: string;
  /** The public key as text. */
  readonly publicKey: string;
  /** Variables of the program that signs. */
  readonly env?: Readonly<Record<string, string>>;
}

const types = {
  ed25519: ["-t", "ed25519"],
  ecdsa: ["-t", "ecdsa", "-b", "256"],
  ecdsa521: ["-t", "ecdsa", "-b", "521"],
  rsa: ["-t", "rsa", "-b", "2048"],
} as const;
export type SshKeyType = keyof typeof types;

/** Makes a key with ssh-keygen. */
export function sshSigner(type: SshKeyType): Signer {
  const key = join(mkdtempSync(join(tmpdir(), "starling-key-")), "key");
  execFileSync("ssh-keygen", [...types[type], "-N", "", "-q", "-C", "bot@acme.io", "-f", key]);
  return { format: "ssh", key, publicKey: readFileSync(`${key}.pub`, "utf8").trim() };
}

/** Makes a key with GnuPG, in a home of its own. */
export function gpgSigner(
  userId: string,
  { type = "ed25519" }: { readonly type?: "ed25519" | "rsa3072" } = {},
): Signer {
  const home = mkdtempSync(join(tmpdir(), "starling-gpg-"));
  const env = { GNUPGHOME: home, PATH: process.env.PATH ?? "" };
  const gpg = (...args: readonly string[]) =>
    execFileSync("gpg", ["--batch", "--quiet", ...args], { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  gpg("--passphrase", "", "--quick-generate-key", userId, type, "sign", "never");
  const publicKey = gpg("--armor", "--export", userId);
  const [key = ""] = /(?<=^fpr:+)[0-9A-F]{40}/m.exec(gpg("--with-colons", "--list-keys")) ?? [];
  return { format: "openpgp", key, publicKey, env };
}

export interface SignedRepository {
  /** Commits a file to `main`, signed when a signer is given. @returns the commit's id. */
  commit(content: string, signer?: Signer): string;
  /** Makes or moves a tag; `lightweight` and `annotated` are not signed. @returns the id of what the tag names. */
  tag(name: string, how: Signer | "lightweight" | "annotated"): string;
  git(...args: readonly string[]): string;
  /** The folder that the git server serves. */
  readonly bare: string;
  /** Writes an object as it is, and points the ref to it. */
  replace(ref: string, type: "commit" | "tag", change: (object: string) => string): string;
}

/** @param name - of a new repository below `root`. */
export function signedRepository(root: string, name: string): SignedRepository {
  const bare = repositoryFolder(root, name);
  const work = mkdtempSync(join(tmpdir(), "starling-work-"));
  const isolated = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", PATH: process.env.PATH ?? "" };
  const run = (args: readonly string[], { env = {}, input = "" }: { env?: Signer["env"]; input?: string } = {}) =>
    execFileSync("git", ["-C", work, "-c", "user.name=Ana", "-c", "user.email=ana@acme.io", ...args], {
      env: { ...isolated, ...env },
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
    });
  const settings = ({ format, key }: Signer) => ["-c", `gpg.format=${format}`, "-c", `user.signingkey=${key}`];
  run(["init", "-q", "--bare", "-b", "main", bare]);
  run(["init", "-q", "-b", "main"]);
  const push = (...refs: readonly string[]) => void run(["push", "-q", "--force", bare, ...refs]);
  const git = (...args: readonly string[]) => run(args).trim();
  return {
    git,
    bare,
    commit(content, signer) {
      const blob = run(["hash-object", "-w", "--stdin"], { input: content }).trim();
      run(["update-index", "--add", "--cacheinfo", `100644,${blob},a.yaml`]);
      const signing = signer === undefined ? [] : settings(signer);
      const sign = signer === undefined ? [] : ["-S"];
      run([...signing, "commit", "-q", ...sign, "-m", "Change a"], { ...(signer?.env && { env: signer.env }) });
      push("main");
      return git("rev-parse", "HEAD");
    },
    tag(tagName, how) {
      if (how === "lightweight") git("tag", "-f", tagName);
      else if (how === "annotated") git("tag", "-f", "-a", "-m", tagName, tagName);
      else run([...settings(how), "tag", "-f", "-s", "-m", tagName, tagName], { ...(how.env && { env: how.env }) });
      push(`refs/tags/${tagName}`);
      return git("rev-parse", `refs/tags/${tagName}`);
    },
    replace(ref, type, change) {
      const before = run(["cat-file", type, ref]);
      const input = change(before);
      const oid = run(["hash-object", "-t", type, "--literally", "-w", "--stdin"], { input }).trim();
      run(["update-ref", ref, oid]);
      push(ref);
      return oid;
    },
  };
}
