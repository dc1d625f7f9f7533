/** The logins in Docker's configuration: `~/.docker/config.json`, or the content of a `.dockerconfigjson`. */
import { isJsonObject } from "#shared/base/json.ts";

export interface DockerLogin {
  readonly username: string;
  readonly password: string;
}

/** Names under which Docker's clients keep the login of Docker Hub. */
const dockerHub: ReadonlySet<string> = new Set(["docker.io", "index.docker.io", "registry-1.docker.io"]);

/**
 * The login for a repository: of the longest key of `auths` that is its host, or its host and a part of its path.
 * @param address - `oci://HOST/REPOSITORY`
 * @returns `"absent"` when no key is for it, or what is wrong with the entry. A problem never repeats a value.
 */
export function dockerLogin(
  { auths }: Readonly<Record<string, unknown>>,
  address: string,
): DockerLogin | "absent" | { readonly problem: string } {
  if (!isJsonObject(auths)) return { problem: 'it has no "auths"' };
  const desired = placeOf(address.replace(/^oci:/, "https:"));
  const fitting = Object.entries(auths).flatMap(([key, entry]) => {
    const place = placeOf(key);
    const fits = place !== undefined && desired !== undefined && isFor(place, desired);
    return fits ? [{ key, entry, length: place.segments.length }] : [];
  });
  const [found] = fitting.sort((a, b) => b.length - a.length);
  if (found === undefined) return "absent";
  const login = loginIn(found.entry);
  return typeof login === "string" ? { problem: `its "auths" has ${login} for ${found.key}` } : login;
}

interface Place {
  readonly host: string;
  readonly segments: readonly string[];
}

/** Docker's clients write hosts, URLs, and URLs of a version of the protocol: `https://index.docker.io/v1/`. */
function placeOf(key: string): Place | undefined {
  const text = /^https?:\/\//i.test(key) ? key : `https://${key}`;
  if (/[\\\s%?#@]/.test(text) || !URL.canParse(text)) return undefined;
  const { host, pathname } = new URL(text);
  const segments = pathname.split("/").filter((segment) => segment !== "");
  const isProtocol = segments.length === 1 && /^v[12]$/.test(segments[0] ?? "");
  return { host: dockerHub.has(host) ? "docker.io" : host, segments: isProtocol ? [] : segments };
}

function isFor(place: Place, desired: Place): boolean {
  return place.host === desired.host && place.segments.every((segment, index) => segment === desired.segments[index]);
}

function loginIn(entry: unknown): DockerLogin | string {
  if (!isJsonObject(entry)) return "no entry";
  const { auth, username, password, identitytoken, registrytoken } = entry;
  if (isText(identitytoken) || isText(registrytoken)) {
    return "a token of a session, which Starling does not use (identitytoken, registrytoken); make a user and a password that may pull, an entry";
  }
  const [, user, secret] = isText(auth) ? (/^([^:]+):(.+)$/s.exec(fromBase64(auth)) ?? []) : [];
  if (user !== undefined && secret !== undefined) return { username: user, password: secret };
  if (!isText(auth) && isText(username) && isText(password)) return { username, password };
  return 'no "auth" that is USER:PASSWORD in base64, nor "username" and "password",';
}

/** Docker pads some with zero bytes. */
function fromBase64(text: string): string {
  const form = /^[A-Za-z0-9+/]+={0,2}$/;
  return form.test(text) ? Buffer.from(text, "base64").toString().replace(/\0+$/, "") : "";
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
