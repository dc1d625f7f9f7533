/** Addresses of git repositories over SSH. */

export interface SshAddress {
  readonly user: string;
  /** In lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  /** As the server gets it: `/acme/app.git`, or `~bot/app.git`. */
  readonly path: string;
}

const defaultPort = 22;
const usualUser = "git";
const form = /^ssh:\/\/(?:([\w.+-]+)@)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])(?::(\d{1,5}))?(\/.*)?$/i;

/** @returns what is wrong with an address that begins with `ssh:`, and what to write instead, or undefined. */
export function checkSshUrl(text: string): string | undefined {
  const [, , host, port, path = ""] = form.exec(text) ?? [];
  if (host === undefined) {
    return /^ssh:\/\/[^/]*:[^/]*@/.test(text)
      ? "contains a password; remove it and name a secret with a key in credentials"
      : "is not the address of a repository over SSH; write it as ssh://git@HOST/PATH";
  }
  if (port !== undefined && !isPort(Number(port))) return `has the port ${port}; ports are numbers from 1 to 65535`;
  if (/^\/*$/.test(path)) return "names a host but no repository";
  if (pathOf(path) === undefined) return "has a path with a % that encodes no character that a path can have";
  return undefined;
}

/** The only reader of such an address, so that no other sees another host than the one that a secret is for. */
export function sshAddress(text: string): SshAddress | undefined {
  const [, user = usualUser, host, port = String(defaultPort), written = ""] = form.exec(text) ?? [];
  const path = pathOf(written);
  if (host === undefined || path === undefined || !isPort(Number(port))) return undefined;
  return { user, host: host.replace(/^\[|\]$|\.$/g, "").toLowerCase(), port: Number(port), path };
}

/** `host`, or `host:port` if the port is not SSH's own. */
export function sshHost({ host, port }: Pick<SshAddress, "host" | "port">): string {
  const spelled = host.includes(":") ? `[${host}]` : host;
  return port === defaultPort ? spelled : `${spelled}:${port}`;
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

/** Git decodes the path of a URL, and takes the slash from before the home of a user. */
function pathOf(written: string): string | undefined {
  try {
    const path = decodeURIComponent(written);
    return /\p{Cc}/u.test(path) ? undefined : path.replace(/^\/~/, "~");
  } catch {
    return undefined;
  }
}
