import {
  credentialsOfForm,
  examples,
  type FormUse,
  type Members,
  type StatedCredentials,
} from "#functions/resolve/credential-forms.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { putSecret, secretMembers } from "#shared/fleet/bound-secret.ts";
import { addressIn, type RemoteUpstream } from "#shared/fleet/kinds/source.ts";
import type { SecretReader } from "#shared/ports.ts";
import { keyScan } from "#shared/source/ssh/known-hosts.ts";
import { sshAddress, sshHost } from "#shared/source/ssh/ssh-url.ts";
import { isBelowPrefix } from "#shared/source/url-prefix.ts";

/**
 * The credentials a Source names. Its secret is JSON with the `host`, or the `prefix` of the addresses, that they are for,
 * `username` and `password` (kind `basic`), `token` (`bearer`) or `privateKey`, `passphrase` and `knownHosts` (`ssh`), or a
 * `GithubApp` (`githubApp`), and optionally the `namespaces` of the Sources that may use them: on a host that many teams
 * share, the host alone is not enough. While they are rotated, `credentials` holds two of them.
 * @returns one or two, in the order in which they are tried; undefined for a Source without credentials.
 * @param options.fresh - true when the server refused the credentials that were read before.
 * @throws StarlingError `SecretNotFound`; or `SecretUnbound`, `SecretMismatch` or `InvalidCredentials`, which name the
 *   secret and never its content.
 */
export async function readCredentials(
  { namespace, upstream }: { readonly namespace: string; readonly upstream: RemoteUpstream },
  secrets: SecretReader,
  { fresh, now }: { readonly fresh: boolean; readonly now: Date },
): Promise<readonly StatedCredentials[] | undefined> {
  const { kind, url, credentials: desired } = upstream;
  if (desired === undefined) return undefined;
  const address = addressIn(upstream);
  const { secret } = desired;
  // Starling's own role needs none.
  if (secret === undefined || desired.kind === "aws") return [{ kind: "aws" }];
  const use = { at: `spec.${kind}`, url: new URL(url), address, namespace, secret, kind: desired.kind, now };
  try {
    return credentialsIn(await secrets.read(secret, { fresh }), use);
  } catch (error) {
    // A corrected secret takes effect at once, not when the cached one expires.
    if (!(error instanceof StarlingError && error.data.secret === secret)) throw error;
    return credentialsIn(await secrets.read(secret, { fresh: true }), use);
  }
}

interface SecretUse extends FormUse {
  /** Field of the upstream: `spec.git`. */
  readonly at: string;
  /** Namespace of the Source. */
  readonly namespace: string;
  readonly secret: string;
}

const mostEntries = 2;
/** Members that count for both entries. */
const shared = ["tokenHosts", "knownHosts", "baseUrl", "ca"] as const;
/** Members that say what the whole secret is for: an entry with one of its own would count for more than it says. */
const binding = ["host", "prefix", "namespaces"] as const;

function credentialsIn(text: string, use: SecretUse): readonly StatedCredentials[] {
  const { at, secret, kind } = use;
  const members = secretMembers(text) ?? {};
  refuseUnbound(members, use);
  const { credentials: entries = [members] } = members;
  const invalid = (what: string) =>
    refused("InvalidCredentials", secret, `${what} that ${at}.credentials says (${kind}): ${remedyFor(use)}`);
  if (!Array.isArray(entries) || entries.length === 0 || entries.length > mostEntries) {
    throw refused(
      "InvalidCredentials",
      secret,
      `has "credentials" that are no list of one or two; write the old and the new ones there: ${remedyFor(use, true)}`,
    );
  }
  return entries.map((entry: unknown, index) => {
    const own = entry === members ? members : entryIn(members, entry);
    const found = own === undefined ? undefined : credentialsOfForm(own, use);
    const which = entries.length === 1 ? "" : `has "credentials"[${index}] `;
    const bound = own === members ? undefined : binding.find((name) => isJsonObject(entry) && name in entry);
    if (bound !== undefined) {
      const what = `has "credentials"[${index}] with "${bound}", which counts for both; write it beside "credentials"`;
      throw refused("InvalidCredentials", secret, what);
    }
    if (found === undefined) throw invalid(which === "" ? "does not have the form" : `${which}without the form`);
    if (!("problem" in found)) return found;
    const { code, problem } = found;
    throw refused(code, secret, which === "" ? `is not used: ${problem}` : `${which}that is not used: ${problem}`);
  });
}

function entryIn(members: Members, entry: unknown): Members | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { prefix } = members;
  return { ...Object.fromEntries(shared.map((name) => [name, members[name]])), ...entry, prefix };
}

/** @throws StarlingError `SecretUnbound`, `SecretMismatch` */
function refuseUnbound({ host, prefix, namespaces }: Members, use: SecretUse): void {
  const { at, url, address, namespace, secret, kind } = use;
  // The keys of Docker's configuration are hosts.
  if (host === undefined && prefix === undefined && kind !== "dockerConfig") {
    const what = `does not say which host it is for, and is sent to none; if it is for this one, ${remedyFor(use)}`;
    throw refused("SecretUnbound", secret, what);
  }
  const other = `correct ${at}.url, or name a secret of this host in ${at}.credentials`;
  if (host !== undefined && (typeof host !== "string" || hostOf(host, url) !== hostOf(url.host, url))) {
    throw refused("SecretMismatch", secret, `is for another host and is not sent to ${shownHost(url)}; ${other}`);
  }
  if (prefix !== undefined && (typeof prefix !== "string" || !isBelowPrefix(address, prefix))) {
    const what = `is for addresses with another "prefix" and is not sent to ${address}`;
    throw refused(
      "SecretMismatch",
      secret,
      `${what}; correct ${at}.url, or name a secret of this address in ${at}.credentials`,
    );
  }
  if (namespaces !== undefined && !(Array.isArray(namespaces) && namespaces.includes(namespace))) {
    const what = `is not for Sources of the namespace ${namespace}; add it to the secret's "namespaces", or name another secret in ${at}.credentials`;
    throw refused("SecretMismatch", secret, what);
  }
}

function remedyFor({ url, secret, kind }: SecretUse, both = false): string {
  const host = shownHost(url);
  const example = both ? { credentials: [examples[kind], examples[kind]] } : examples[kind];
  const put = putSecret(secret, { host, ...example });
  return kind === "ssh"
    ? `${put} (${scanFor(url)} prints the lines of known_hosts; compare them with what its operator publishes)`
    : put;
}

function scanFor({ href }: URL): string {
  const address = sshAddress(href);
  return address === undefined ? "`ssh-keyscan`" : `\`${keyScan(address)}\``;
}

function shownHost({ host, href }: URL): string {
  const address = sshAddress(href);
  return address === undefined ? host : sshHost(address);
}

/** The host with its port, which is left out when it is the scheme's default; undefined when the text is not just a host. */
function hostOf(text: string, { protocol }: URL): string | undefined {
  const spelled = `${protocol}//${text}/`;
  if (/[/?#@\\]/.test(text) || !URL.canParse(spelled)) return undefined;
  if (protocol === "ssh:") {
    const address = sshAddress(spelled);
    return address === undefined ? undefined : sshHost(address);
  }
  const { hostname, port } = new URL(spelled);
  return `${hostname.replace(/\.$/, "")}:${port}`;
}

function refused(code: ErrorCode, secret: string, what: string): StarlingError {
  return new StarlingError(`secret ${secret} ${what}`, { code, retry: "permanent", data: { secret } });
}
