import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import ssh2 from "ssh2";
import { spawnGit } from "#local/git/git-command.ts";

const { Server, utils } = ssh2;

export type KeyType = "ed25519" | "ecdsa" | "rsa";

export interface KeyPair {
  readonly private: string;
  readonly public: string;
}

/** One of a thousand keys that ssh2 generates is damaged. */
export function newKeyPair(type: KeyType = "ed25519", passphrase?: string): KeyPair {
  for (;;) {
    const pair = generated(type, passphrase);
    if (!(utils.parseKey(pair.private, passphrase) instanceof Error)) return pair;
  }
}

function generated(type: KeyType, passphrase: string | undefined): KeyPair {
  // The types know no key without these, and the code no key with an undefined one.
  const secured = (passphrase === undefined ? {} : { passphrase, cipher: "aes256-ctr", rounds: 4 }) as {
    readonly passphrase: string;
    readonly cipher: string;
    readonly rounds: number;
  };
  if (type === "rsa") return utils.generateKeyPairSync("rsa", { bits: 2048, ...secured });
  if (type === "ecdsa") return utils.generateKeyPairSync("ecdsa", { bits: 256, ...secured });
  return utils.generateKeyPairSync("ed25519", secured);
}

/** The pair of a private key. */
export function keyPairOf(privateKey: string, passphrase: string): KeyPair {
  const key = utils.parseKey(privateKey, passphrase) as ssh2.ParsedKey;
  return { private: privateKey, public: `${key.type} ${key.getPublicSSH().toString("base64")}` };
}

export interface SshGitServerOptions {
  readonly root: string;
  readonly hostKey: KeyPair;
  /** The keys that may sign in. */
  readonly users: readonly KeyPair[];
  /** The version of git's protocol that the server takes from its clients. */
  readonly protocol?: "v0" | "v2";
  /** Takes the place of the command. */
  readonly disturb?: (channel: ssh2.ServerChannel) => void;
}

export interface SshGitServer {
  readonly port: number;
  /** `ssh://git@127.0.0.1:2222/fleet.git` */
  url(repository: string): string;
  /** The line of known_hosts for its key. */
  readonly knownHosts: string;
  /** Every attempt to sign in: the user's name and the method. */
  readonly attempts: string[];
  readonly commands: string[];
  /** The exit codes of the commands. */
  readonly exits: (number | null)[];
  stop(): Promise<void>;
}

/** Serves `git-upload-pack` for bare repositories over SSH on loopback, as forges do. */
export async function startSshGitServer(options: SshGitServerOptions): Promise<SshGitServer> {
  const { root, hostKey, users, protocol = "v2", disturb } = options;
  const allowed = users.flatMap((pair) => utils.parseKey(pair.public) as ssh2.ParsedKey);
  const attempts: string[] = [];
  const commands: string[] = [];
  const exits: (number | null)[] = [];
  const connections = new Set<ssh2.Connection>();
  const server = new Server({ hostKeys: [hostKey.private] }, (client) => {
    connections.add(client);
    client.on("close", () => void connections.delete(client));
    client.on("error", () => undefined);
    client.on("authentication", (context) => {
      attempts.push(`${context.username} ${context.method}`);
      if (context.method !== "publickey") return context.reject(["publickey"]);
      const key = allowed.find((each) => each.getPublicSSH().equals(context.key.data));
      const { signature, blob, hashAlgo } = context;
      const isProven =
        signature === undefined || (blob !== undefined && key?.verify(blob, signature, hashAlgo) === true);
      return key !== undefined && isProven ? context.accept() : context.reject(["publickey"]);
    });
    client.on("session", (accept) => {
      const session = accept();
      let version = "";
      session.on("env", (_accept, _reject, { key, val }) => {
        if (key === "GIT_PROTOCOL" && protocol === "v2") version = val;
      });
      session.on("exec", (take, _reject, { command }) => {
        commands.push(command);
        const channel = take();
        if (disturb !== undefined) return disturb(channel);
        const [, path = ""] = /^git-upload-pack '((?:[^']|'\\'')*)'$/.exec(command) ?? [];
        const git = spawnGit(["upload-pack", join(root, path.replaceAll("'\\''", "'"))], { GIT_PROTOCOL: version });
        channel.pipe(git.stdin).on("error", () => undefined);
        git.stdout.pipe(channel, { end: false });
        git.stderr.pipe(channel.stderr, { end: false });
        git.on("close", (code) => {
          exits.push(code);
          channel.exit(code ?? 1);
          channel.end();
        });
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: (repository) => `ssh://git@127.0.0.1:${port}/${repository}.git`,
    knownHosts: `[127.0.0.1]:${port} ${hostKey.public}\n`,
    attempts,
    commands,
    exits,
    async stop() {
      for (const client of connections) client.end();
      server.close();
      await once(server, "close");
    },
  };
}
