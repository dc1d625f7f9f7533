/** SSH to a host that the author of a Source chose: its address is checked, and then its key, before anything is sent. */
import { connect, type Socket } from "node:net";
import type { Client, ClientChannel, PublicKeyAuthMethod, ServerHostKeyAlgorithm } from "ssh2";
import { type AddressRules, guardedLookup, refuseLiteralAddress } from "#shared/adapters/net/address-rules.ts";
import { parsedKey } from "#shared/adapters/ssh/private-keys.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { SourceCredentials } from "#shared/ports.ts";
import { type HostKeys, hostKeysFor, keyScan } from "#shared/source/ssh/known-hosts.ts";
import { type SshAddress, sshHost } from "#shared/source/ssh/ssh-url.ts";

export interface SshUse {
  /** As in the Source, for messages. */
  readonly url: string;
  readonly credentials: SourceCredentials | undefined;
  readonly rules: AddressRules;
  /** Ends the connection and all that is read from it. */
  readonly signal: AbortSignal;
}

/** A command on the server. */
export interface SshStream {
  write(bytes: Buffer): void;
  end(): void;
  /** What the command writes. */
  chunks(): AsyncIterable<Buffer>;
  /** The beginning of what the command has written to its second output. */
  errors(): string;
  close(): void;
}

export interface SshConnection {
  run(command: string, env: Readonly<Record<string, string>>): Promise<SshStream>;
  close(): void;
}

const maxErrorText = 2000;
/** A command that writes more is ended. */
const maxErrorMiB = 1;

/**
 * The algorithms by which a server proves that it has a key of a type of known_hosts. A key that the server proves with
 * SHA-1 is refused.
 */
const proofs: Readonly<Record<string, readonly ServerHostKeyAlgorithm[]>> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"],
};

/**
 * @throws StarlingError `InvalidCredentials`, `HostKeyMismatch`, `GitAuthenticationFailed`, `AddressRefused`; otherwise the
 *   error of the socket.
 */
export async function openSsh(address: SshAddress, use: SshUse): Promise<SshConnection> {
  const { credentials, signal } = use;
  if (credentials?.kind !== "ssh") throw new Error(`${use.url} passed the checks of a Source without a key`);
  const known = knownKeys(address, credentials.knownHosts);
  const key = await parsedKey(credentials);
  const socket = await connected(address, use);
  const { Client } = await ssh2();
  const client = new Client();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let refusal: StarlingError | undefined;
  client.on("ready", resolve);
  // An error after the connection is met by the reader of the stream, which ends.
  client.on("error", (error) => reject(refusal ?? reasonOf(error, { address, use, known })));
  client.on("close", () => reject(new Error("the SSH server closed the connection")));
  const destroy = () => void client.destroy();
  signal.addEventListener("abort", destroy, { once: true });
  const signIn: PublicKeyAuthMethod = { type: "publickey", username: address.user, key };
  try {
    client.connect({
      sock: socket,
      username: address.user,
      readyTimeout: 0,
      algorithms: { serverHostKey: known.types.flatMap((type) => proofs[type] ?? []) },
      hostVerifier: (shown: Buffer) => {
        refusal = keyRefusal(shown, { address, use, known });
        return refusal === undefined;
      },
      authHandler: [signIn],
    });
    await promise;
  } catch (error) {
    client.destroy();
    throw error;
  }
  return {
    run: (command, env) => run(client, command, env),
    close: () => {
      signal.removeEventListener("abort", destroy);
      client.destroy();
    },
  };
}

/** Loaded at the first use: most Sources are read over HTTPS, and a cold start would take 100 ms longer. */
async function ssh2() {
  return (await import("ssh2")).default;
}

function knownKeys(address: SshAddress, text: string): HostKeys {
  const known = hostKeysFor(address, text);
  const host = sshHost(address);
  if (known.types.some((type) => proofs[type] !== undefined)) return known;
  const has = known.types.length === 0 ? "has no key" : `has only keys of the types ${known.types.join(", ")}`;
  const remedy = `add the lines of \`${keyScan(address)}\` after you have compared them with the fingerprints that its operator publishes`;
  throw new StarlingError(
    `"knownHosts" in the secret of spec.git.credentials ${has} for ${host}, and no unknown server is trusted: ${remedy}`,
    { code: "InvalidCredentials", retry: "permanent" },
  );
}

async function connected({ host, port }: SshAddress, { url, rules, signal }: SshUse): Promise<Socket> {
  signal.throwIfAborted();
  refuseLiteralAddress(rules, new URL(url));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port, lookup: guardedLookup(rules), signal });
  socket.once("connect", resolve);
  socket.once("error", reject);
  await promise;
  return socket;
}

interface Met {
  readonly address: SshAddress;
  readonly use: SshUse;
  readonly known: HostKeys;
}

function keyRefusal(shown: Buffer, { address, use, known }: Met): StarlingError | undefined {
  const isShown = (key: Uint8Array) => shown.equals(key);
  if (known.revoked.some(isShown)) return mismatch(use, "shows a key that known_hosts has as @revoked");
  if (known.keys.some(isShown)) return undefined;
  return mismatch(use, `shows another key than known_hosts has for ${sshHost(address)}`);
}

function mismatch({ url }: SshUse, what: string): StarlingError {
  const remedy =
    'nothing was sent to it. Somebody may be in between; if the operator of the host has published a new key, correct "knownHosts" in the secret of spec.git.credentials';
  return new StarlingError(`${url}: the server ${what}, and ${remedy}`, {
    code: "HostKeyMismatch",
    retry: "permanent",
  });
}

function reasonOf(error: Error & { readonly level?: string }, { address, use, known }: Met): Error {
  if (error instanceof StarlingError) return error;
  if (error.level === "client-authentication") {
    const remedy = "register its public key there, or correct the secret of spec.git.credentials";
    const message = `${use.url}: the server refuses the key for the user ${address.user}: ${remedy}`;
    return new StarlingError(message, { code: "GitAuthenticationFailed", retry: "permanent" });
  }
  if (/host key format/.test(error.message))
    return mismatch(use, `has no key of the types that known_hosts has (${known.types.join(", ")})`);
  return error;
}

async function run(client: Client, command: string, env: Readonly<Record<string, string>>): Promise<SshStream> {
  const { promise, resolve, reject } = Promise.withResolvers<ClientChannel>();
  client.exec(command, { env }, (error, channel) => (error === undefined ? resolve(channel) : reject(error)));
  // A server that goes away answers to no request.
  client.once("close", () => reject(new Error("the SSH server closed the connection")));
  const channel = await promise;
  let errors = "";
  let errorBytes = 0;
  // A connection that is cut ends the stream without an error.
  let cut: string | undefined;
  channel.stderr.on("data", (bytes: Buffer) => {
    errorBytes += bytes.length;
    if (errors.length < maxErrorText) errors += bytes.toString("utf8");
    if (errorBytes <= maxErrorMiB * 1024 * 1024) return;
    cut = `the SSH server writes more than ${maxErrorMiB} MiB of errors`;
    client.destroy();
  });
  client.once("error", () => {
    cut ??= "the SSH connection was cut";
  });
  return {
    write: (bytes) => void channel.write(bytes),
    end: () => void channel.end(),
    async *chunks() {
      yield* channel as AsyncIterable<Buffer>;
      if (cut !== undefined) throw new Error(cut);
    },
    errors: () => errors,
    close: () => void channel.close(),
  };
}
