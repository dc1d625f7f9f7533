/** Prefixes of addresses, to which a secret can be bound: `https://github.com/acme/`. */
import { sshAddress } from "#shared/source/ssh/ssh-url.ts";

/**
 * Whether an address begins with a prefix, by whole segments of its path: `https://github.com/acme` has
 * `https://github.com/acme/app` below it, and not `https://github.com/acme-evil/app`. A name of a repository is the same
 * with `.git` behind it.
 *
 * An address that two readers could read differently is below nothing: one with an encoded slash, `..`, `..;`, or a user in front
 * of an HTTP host.
 */
export function isBelowPrefix(address: string, prefix: string): boolean {
  if (/[?#]/.test(prefix)) return false;
  const [place, base] = [placeOf(address), placeOf(prefix)];
  if (place === undefined || base === undefined || place.origin !== base.origin) return false;
  const last = base.segments.length - 1;
  const isWhole = place.segments.length === base.segments.length;
  return base.segments.every((segment, index) => {
    const found = place.segments[index];
    return segment === found || (isWhole && index === last && withoutGit(segment) === withoutGit(found ?? ""));
  });
}

interface Place {
  /** Scheme, user of SSH, host and port. */
  readonly origin: string;
  readonly segments: readonly string[];
}

/** Servers in Java take what follows a semicolon away before they resolve dots. */
const dots = /^\.\.?(?:;|$)/;
/** `%`, slash, backslash and control characters: a server may decode them once more than this function. */
const ambiguous = /%(?:25|2f|5c|[01][0-9a-f]|7f)/i;

function placeOf(text: string): Place | undefined {
  if (/[\\\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return undefined;
  // Its dots are resolved: a server gets the address in this form.
  const url = new URL(text);
  if (ambiguous.test(url.pathname)) return undefined;
  const found = url.protocol === "ssh:" ? sshPlace(url.href) : httpPlace(text);
  const path = found === undefined ? undefined : decoded(found.path);
  if (found === undefined || path === undefined) return undefined;
  const segments = path.replace(/^\//, "").replace(/\/$/, "").split("/");
  if (segments.some((segment) => dots.test(segment))) return undefined;
  return { origin: found.origin, segments: segments.length === 1 && segments[0] === "" ? [] : segments };
}

interface Found {
  readonly origin: string;
  readonly path: string;
}

function sshPlace(href: string): Found | undefined {
  const address = sshAddress(href);
  if (address === undefined) return undefined;
  const { user, host, port, path } = address;
  return { origin: `ssh://${user}@${host}:${port}`, path };
}

/** The addresses of registries are read as `https` ones, because only these have hosts with one spelling. */
function httpPlace(text: string): Found | undefined {
  const [, scheme = "", rest = ""] = /^(https?|oci):\/\/(.*)$/i.exec(text) ?? [];
  const as = scheme.toLowerCase() === "oci" ? `https://${rest}` : text;
  if (scheme === "" || !URL.canParse(as)) return undefined;
  const { username, password, hostname, port, pathname } = new URL(as);
  if (username !== "" || password !== "") return undefined;
  return { origin: `${scheme.toLowerCase()}://${hostname.replace(/\.$/, "")}:${port}`, path: pathname };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function withoutGit(name: string): string {
  return name.replace(/\.git$/, "");
}
