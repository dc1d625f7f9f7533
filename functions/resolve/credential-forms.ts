/** The forms that the content of a secret has, for each kind of credentials. */
import { dockerLogin } from "#functions/resolve/docker-config.ts";
import type { GithubApp } from "#functions/resolve/github-app.ts";
import { tlsIdentity } from "#functions/resolve/tls-identity.ts";
import { defined } from "#shared/base/defined.ts";
import { isToken } from "#shared/fleet/bound-secret.ts";
import type { RemoteUpstream } from "#shared/fleet/kinds/source.ts";
import type { HttpCredentials, SourceCredentials, SshKey, TlsIdentity } from "#shared/ports.ts";
import { checkHttpUrl } from "#shared/source/http-url.ts";

/** An app, and a role of AWS, still have to ask for a token. */
export type StatedCredentials = SourceCredentials | GithubApp | { readonly kind: "aws" };

/** The kinds that have a secret. */
type CredentialsKind = Exclude<NonNullable<RemoteUpstream["credentials"]>["kind"], "aws">;

export type Members = Readonly<Record<string, unknown>>;

export interface FormUse {
  readonly kind: CredentialsKind;
  readonly url: URL;
  /** Everything that the Source names, with the chart in a registry. */
  readonly address: string;
  readonly now: Date;
}

/** The secret is not for this address, or lacks something. A problem never repeats a value. */
export interface FormProblem {
  readonly code: "SecretMismatch" | "InvalidCredentials";
  readonly problem: string;
}

/** @returns undefined when the members do not have the form at all. */
export function credentialsOfForm(members: Members, use: FormUse): StatedCredentials | FormProblem | undefined {
  const { kind, url, now } = use;
  if (kind === "ssh") return sshIn(members);
  const found = kind === "githubApp" ? appIn(members, url) : loginIn(members, use);
  if (found === undefined || "problem" in found) return found;
  // The private key of an app is no client's.
  const tls = tlsIdentity(kind === "githubApp" ? { ca: members.ca } : members, now);
  if (typeof tls === "string") return { code: "InvalidCredentials", problem: tls };
  return { ...found, ...boundOf(members, tls) };
}

function boundOf({ prefix }: Members, tls: TlsIdentity | undefined): Pick<HttpCredentials, "prefix" | "tls"> {
  return defined({ prefix: typeof prefix === "string" ? prefix : undefined, tls });
}

function loginIn(
  members: Members,
  { kind, address }: FormUse,
): Exclude<HttpCredentials, SshKey> | FormProblem | undefined {
  const { username, password, token, tokenHosts, certificate, privateKey } = members;
  const more = Array.isArray(tokenHosts) && tokenHosts.every(isText) ? { tokenHosts } : {};
  if (kind === "bearer") return isToken(token) ? { kind, token } : undefined;
  if (kind === "tls") return isText(certificate) && isText(privateKey) ? { kind } : undefined;
  if (kind === "basic") {
    return isText(username) && isText(password) ? { kind, username, password, ...more } : undefined;
  }
  const login = dockerLogin(members, address);
  if (login === "absent") {
    return {
      code: "SecretMismatch",
      problem: `has no login for ${address} among its "auths"; add it, or correct the Source`,
    };
  }
  if ("problem" in login) return { code: "InvalidCredentials", problem: login.problem };
  return { kind: "basic", ...login, ...more };
}

function sshIn({ privateKey, passphrase, knownHosts }: Members): SshKey | undefined {
  if (!isText(privateKey) || !isText(knownHosts) || !(passphrase === undefined || isText(passphrase))) return undefined;
  return { kind: "ssh", privateKey, knownHosts, ...defined({ passphrase }) };
}

function appIn(members: Members, { host }: URL): GithubApp | undefined {
  const { appId, installationId, owner, privateKey, baseUrl } = members;
  const installation = installationIn(installationId, owner);
  if (installation === undefined || !isId(appId, /^[\w.-]{1,100}$/) || !isText(privateKey)) return undefined;
  const usual = host === "github.com" ? "https://api.github.com" : `https://${host}/api/v3`;
  const base = baseUrl ?? usual;
  if (!isText(base) || checkHttpUrl(base, undefined) !== undefined || base.includes("?")) return undefined;
  return { kind: "githubApp", appId: String(appId), installation, privateKey, baseUrl: base.replace(/\/+$/, "") };
}

/** Both become parts of a path. */
function installationIn(id: unknown, owner: unknown): GithubApp["installation"] | undefined {
  if (owner === undefined) return isId(id, /^\d{1,20}$/) ? { id: String(id) } : undefined;
  return id === undefined && typeof owner === "string" && /^[\w-]{1,100}$/.test(owner) ? { owner } : undefined;
}

/** GitHub shows ids as numbers. A client's id is a text. */
function isId(value: unknown, form: RegExp): value is string | number {
  return (typeof value === "number" || typeof value === "string") && form.test(String(value));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** The members of each kind, for messages. */
export const examples: Readonly<Record<CredentialsKind, Members>> = {
  basic: { username: "<user>", password: "<password>" },
  bearer: { token: "<token>" },
  ssh: { privateKey: "<private key>", knownHosts: "<lines of known_hosts>" },
  tls: { certificate: "<certificate in PEM>", privateKey: "<its key in PEM>" },
  dockerConfig: { auths: { "<host>": { auth: "<USER:PASSWORD in base64>" } } },
  githubApp: { appId: "<id>", owner: "<organization or person>", privateKey: "<private key>" },
};
