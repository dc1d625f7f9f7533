/** The format of the file known_hosts (sshd(8)): which keys a host may have. */
import { createHmac } from "node:crypto";
import type { SshAddress } from "#shared/source/ssh/ssh-url.ts";

export interface HostKeys {
  /** Key types as in the protocol, such as `ssh-ed25519`, of the keys that are known. */
  readonly types: readonly string[];
  /** The keys in the protocol's own form. */
  readonly keys: readonly Uint8Array[];
  /** Keys that somebody has marked as stolen. */
  readonly revoked: readonly Uint8Array[];
}

/** The keys that a text in the form of known_hosts has for a server. Lines that are no keys are passed over. */
export function hostKeysFor({ host, port }: Pick<SshAddress, "host" | "port">, text: string): HostKeys {
  const names = port === 22 ? [host] : [`[${host}]:${port}`];
  const found = text.split(/\r?\n/).flatMap((line) => entryIn(line) ?? []);
  const own = found.filter(({ hosts }) => matches(hosts, names[0] ?? ""));
  const known = own.filter(({ marker }) => marker === undefined);
  return {
    types: [...new Set(known.map(({ type }) => type))],
    keys: known.map(({ key }) => key),
    revoked: own.filter(({ marker }) => marker === "@revoked").map(({ key }) => key),
  };
}

/** The command that prints the lines of a server. */
export function keyScan({ host, port }: Pick<SshAddress, "host" | "port">): string {
  return `ssh-keyscan -t ed25519,ecdsa,rsa ${port === 22 ? "" : `-p ${port} `}${host}`;
}

interface Entry {
  readonly marker: string | undefined;
  readonly hosts: string;
  readonly type: string;
  readonly key: Uint8Array;
}

function entryIn(line: string): Entry | undefined {
  const fields = line.trim().split(/[ \t]+/);
  const marker = fields[0]?.startsWith("@") === true ? fields.shift() : undefined;
  const [hosts, type, encoded] = fields;
  if (hosts === undefined || hosts.startsWith("#") || type === undefined || encoded === undefined) return undefined;
  const key = Buffer.from(encoded, "base64");
  // The key states its type itself. A line whose two types differ is damaged.
  const length = key.length >= 4 ? key.readUInt32BE(0) : 0;
  return key.toString("latin1", 4, 4 + length) === type ? { marker, hosts, type, key } : undefined;
}

/** Patterns with `*` and `?` are taken as OpenSSH takes them; one with `!` excludes the host from its line. */
function matches(hosts: string, name: string): boolean {
  if (hosts.startsWith("|")) return isHashOf(hosts, name);
  let matched = false;
  for (const pattern of hosts.toLowerCase().split(",")) {
    const isExcluded = pattern.startsWith("!");
    if (!isLike(isExcluded ? pattern.slice(1) : pattern, name)) continue;
    if (isExcluded) return false;
    matched = true;
  }
  return matched;
}

function isHashOf(hosts: string, name: string): boolean {
  const [, version, salt = "", hash = ""] = hosts.split("|");
  const own = createHmac("sha1", Buffer.from(salt, "base64")).update(name).digest("base64");
  return version === "1" && own === hash;
}

/** In time of the product of the lengths, whatever the pattern is. */
function isLike(pattern: string, name: string): boolean {
  let ends = new Set([0]);
  for (const letter of pattern) {
    const next = new Set<number>();
    for (const at of ends) {
      if (letter === "*") for (let end = at; end <= name.length; end++) next.add(end);
      else if (at < name.length && (letter === "?" || letter === name[at])) next.add(at + 1);
    }
    ends = next;
  }
  return ends.has(name.length);
}
