import { createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runGit } from "#local/git/git-command.ts";
import { commitInto, initRepository, repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import {
  type KeyPair,
  type KeyType,
  keyPairOf,
  newKeyPair,
  type SshGitServer,
  type SshGitServerOptions,
  startSshGitServer,
} from "#test/support/ssh-git-server.ts";

const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
const secret = "starling/git/shop";
const rules = addressRules("127.0.0.1");

let root: string;
let user: KeyPair;
let host: KeyPair;
let server: SshGitServer;
let world: SourceWorld;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-ssh-"));
  [user, host] = [newKeyPair(), newKeyPair()];
  await initRepository(repositoryFolder(root, "shop"));
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules });
  await serve();
});

afterEach(async () => {
  await server.stop();
  await rm(root, { recursive: true, force: true });
});

async function serve(more: Partial<SshGitServerOptions> = {}): Promise<void> {
  await server?.stop();
  server = await startSshGitServer({ root, hostKey: host, users: [user], ...more });
  keep({});
}

/** Writes the secret. */
function keep(more: object): void {
  const members = {
    host: `127.0.0.1:${server.port}`,
    privateKey: user.private,
    knownHosts: server.knownHosts,
    ...more,
  };
  world.secrets.set(secret, JSON.stringify(members));
}

async function commit(path = "deploy/a.yaml", content = config): Promise<string> {
  const folder = repositoryFolder(root, "shop");
  return commitInto({ folder, files: { [path]: content }, message: "First" });
}

const specOf = (more: object = {}) => ({
  git: { url: server.url("shop"), ref: { branch: "main" }, credentials: { secret, kind: "ssh" }, ...more },
});

describe("a Source of git over SSH", () => {
  test.each(["v2", "v0"] as const)(
    "its files are read by the protocol %s, and a new commit is a new revision [source.git.protocols]",
    async (protocol) => {
      await serve({ protocol });
      const first = await commit();
      await world.put({ ...specOf(), paths: ["deploy"] });
      expect((await world.resolve()).status.artifact).toMatchObject({
        revision: `main@sha1:${first}`,
        files: 1,
      });
      expect((await world.files()).map(({ path }) => path)).toEqual(["deploy/a.yaml"]);
      const second = await commit("deploy/b.yaml");
      expect((await world.resolve()).status.artifact).toMatchObject({ revision: `main@sha1:${second}`, files: 2 });
      expect(new Set(server.commands)).toEqual(new Set(["git-upload-pack '/shop.git'"]));
      expect(server.exits.every((code) => code === 0)).toBe(protocol === "v2");
      expect(server.attempts.every((each) => each === "git publickey")).toBe(true);
    },
  );

  test("files outside of its paths are not fetched from a server that can leave them out", async () => {
    await serve();
    await commit();
    await commit("other/b.yaml", "b: 1\n");
    const folder = repositoryFolder(root, "shop");
    await runGit(["-C", folder, "config", "uploadpack.allowFilter", "true"]);
    const other = (await runGit(["-C", folder, "rev-parse", "main:other/b.yaml"])).trim();
    await rm(join(folder, "objects", other.slice(0, 2), other.slice(2)));
    await world.put({ ...specOf(), paths: ["deploy"] });
    expect((await world.resolve()).status.artifact).toMatchObject({ files: 1 });
  });

  test.each<[KeyType, string | undefined]>([
    ["ed25519", undefined],
    ["ecdsa", undefined],
    ["rsa", undefined],
    ["ed25519", "a passphrase"],
    ["rsa", "a passphrase"],
  ])("a key of the type %s with the passphrase %s signs in [source.ssh.keys]", async (type, passphrase) => {
    user = newKeyPair(type, passphrase);
    host = newKeyPair(type);
    await serve();
    keep({ passphrase });
    await commit();
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a key in PEM, as former versions of ssh-keygen wrote it, signs in", async () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = privateKey.export({ type: "pkcs1", format: "pem", cipher: "aes-128-cbc", passphrase: "secret" });
    expect(pem).toContain("Proc-Type: 4,ENCRYPTED");
    user = keyPairOf(String(pem), "secret");
    await serve();
    keep({ passphrase: "secret" });
    await commit();
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a hashed entry of known_hosts is found [source.ssh.known-hosts]", async () => {
    const salt = randomBytes(20);
    const hash = createHmac("sha1", salt).update(`[127.0.0.1]:${server.port}`).digest("base64");
    const knownHosts = `|1|${salt.toString("base64")}|${hash} ${host.public}`;
    keep({ knownHosts });
    await commit();
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a repository with a quote in its name is read", async () => {
    await initRepository(join(root, "o'neil.git"));
    await commitInto({ folder: join(root, "o'neil.git"), files: { "a.yaml": config }, message: "First" });
    await world.put(specOf({ url: server.url("o'neil") }));
    expect(await world.ready()).toMatchObject({ status: "True" });
    await world.put(specOf({ url: server.url("%6f'neil") }));
    expect(await world.ready()).toMatchObject({ status: "True" });
  });
});

describe("a server over SSH that is not the right one", () => {
  test("a server with another key gets nothing, and the last good artifact stays [source.ssh.known-hosts]", async () => {
    await commit();
    await world.put(specOf());
    const before = (await world.resolve()).status.artifact;
    const { port } = server;
    host = newKeyPair();
    const good = server.knownHosts;
    await serve();
    keep({ knownHosts: good.replace(String(port), String(server.port)) });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      status: "False",
      reason: "HostKeyMismatch",
      message: expect.stringContaining(
        `shows another key than known_hosts has for 127.0.0.1:${server.port}, and nothing was sent to it`,
      ),
    });
    expect((await world.resolve()).status.artifact).toEqual(before);
    expect([server.attempts, server.commands]).toEqual([[], []]);
  });

  test("a key that is marked as revoked is refused [source.ssh.known-hosts]", async () => {
    keep({ knownHosts: `${server.knownHosts}@revoked ${server.knownHosts}` });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "HostKeyMismatch",
      message: expect.stringContaining("@revoked"),
    });
    expect(server.attempts).toEqual([]);
  });

  test("a server with keys of other types than known_hosts has is refused", async () => {
    keep({ knownHosts: `[127.0.0.1]:${server.port} ${newKeyPair("rsa").public}` });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "HostKeyMismatch",
      message: expect.stringContaining("has no key of the types that known_hosts has (ssh-rsa)"),
    });
    expect(server.attempts).toEqual([]);
  });

  test.each([
    ["no line for it", "github.com ssh-ed25519 AAAA"],
    ["a line for its default port alone", undefined],
  ])(
    "known_hosts with %s trusts nobody, and the message has the command that prints the lines [source.ssh.known-hosts]",
    async (_what, text) => {
      keep({ knownHosts: text ?? `127.0.0.1 ${host.public}` });
      await world.put(specOf());
      expect(await world.ready()).toMatchObject({
        reason: "InvalidCredentials",
        message: expect.stringContaining(`ssh-keyscan -t ed25519,ecdsa,rsa -p ${server.port} 127.0.0.1`),
      });
      expect(server.attempts).toEqual([]);
    },
  );

  test("a corrected known_hosts is read at once", async () => {
    await commit();
    const good = world.secrets.get(secret) ?? "";
    const stale = JSON.stringify({
      ...JSON.parse(good),
      knownHosts: `[127.0.0.1]:${server.port} ${newKeyPair().public}`,
    });
    const asked: boolean[] = [];
    world.readSecret = async (_name, { fresh = false } = {}) => {
      asked.push(fresh);
      return fresh ? good : stale;
    };
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(asked).toEqual([false, true]);
  });

  test("an address that is not allowed is not connected to [source.hostile.address]", async () => {
    world.git = new IsomorphicGitRemote({ rules: addressRules("") });
    for (const name of ["127.0.0.1", "localhost"]) {
      const knownHosts = `[${name}]:${server.port} ${host.public}`;
      keep({ host: `${name}:${server.port}`, knownHosts });
      await world.put(specOf({ url: `ssh://git@${name}:${server.port}/shop.git` }));
      expect(await world.ready()).toMatchObject({ reason: "AddressRefused" });
    }
    expect(server.attempts).toEqual([]);
  });
});

/** Writes another number of rounds into a key with a passphrase, after the name of the function and a salt of 16 bytes. */
function withRounds(privateKey: string, rounds: number): string {
  const lines = privateKey.trim().split("\n");
  const bytes = Buffer.from(lines.slice(1, -1).join(""), "base64");
  bytes.writeUInt32BE(rounds, bytes.indexOf("bcrypt") + "bcrypt".length + 4 + 4 + 16);
  return [lines[0], bytes.toString("base64"), lines.at(-1)].join("\n");
}

describe("a key that does not work", () => {
  test("a key that the server does not know is refused by name, and the secret is read again [source.ssh.keys]", async () => {
    keep({ privateKey: newKeyPair().private });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "GitAuthenticationFailed",
      message: expect.stringContaining("the server refuses the key for the user git"),
    });
    expect(server.commands).toEqual([]);
  });

  const locked = newKeyPair("ed25519", "right");
  test.each<[string, object, string]>([
    ["without its passphrase", { privateKey: locked.private }, 'needs a passphrase; write it into "passphrase"'],
    ["with a wrong passphrase", { privateKey: locked.private, passphrase: "wrong" }, 'is not opened by "passphrase"'],
    ["that is public", { privateKey: locked.public }, "is a public key"],
    [
      "with four billion rounds",
      { privateKey: withRounds(locked.private, 4_000_000_000), passphrase: "right" },
      "has 4000000000 rounds for its passphrase; write it again with ssh-keygen -p -a 16 -f FILE",
    ],
    ["that is none", { privateKey: "s3cret" }, "is no key that Starling reads"],
  ])("a key %s is InvalidCredentials", async (_what, more, message) => {
    keep(more);
    await world.put(specOf());
    const ready = await world.ready();
    expect(ready).toMatchObject({ reason: "InvalidCredentials", message: expect.stringContaining(message) });
    expect(ready?.message).not.toContain("s3cret");
    expect(server.attempts).toEqual([]);
  });
});

describe("a server over SSH that does not answer as it should", () => {
  test("a repository that does not exist is GitNotFound, with what the server says", async () => {
    await world.put(specOf({ url: server.url("other") }));
    expect(await world.ready()).toMatchObject({
      reason: "GitNotFound",
      message: expect.stringContaining("does not appear to be a git repository"),
    });
  });

  test("an empty repository is EmptyGitRepository, and a missing branch GitRefNotFound", async () => {
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ reason: "EmptyGitRepository" });
    await commit();
    await world.put(specOf({ ref: { branch: "other" } }));
    expect(await world.ready()).toMatchObject({ reason: "GitRefNotFound" });
  });

  const limits = { timeoutSeconds: 1, maxListingBytes: 1000, maxRefs: 10 };
  test.each<[string, NonNullable<SshGitServerOptions["disturb"]>, string, string]>([
    ["is silent", () => undefined, "GitOperationFailed", "did not answer within 1 s"],
    ["ends at once", (channel) => void channel.end(), "GitOperationFailed", "ends without an answer"],
    [
      "lists without end",
      (channel) => void channel.write(`0400${"x".repeat(1020)}`.repeat(3)),
      "GitTooLarge",
      "more than 1000 bytes",
    ],
    ["does not speak git", (channel) => void channel.write("hello, world"), "GitOperationFailed", '"hell" as a packet'],
  ])(
    "a server that %s is told by name, in bounded time [source.hostile.endless]",
    async (_what, disturb, reason, message) => {
      await serve({ disturb });
      world.git = new IsomorphicGitRemote({ rules, limits });
      await world.put(specOf());
      expect(await world.ready()).toMatchObject({ reason, message: expect.stringContaining(message) });
    },
  );

  test.each<[string, (socket: Socket) => void]>([
    ["is silent", () => undefined],
    ["closes", (socket) => void socket.end()],
    ["resets", (socket) => void socket.resetAndDestroy()],
    ["is no SSH server", (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
    [
      "greets without end",
      (socket) => {
        const more = () => {
          while (socket.writable && socket.write("x".repeat(65_536)));
        };
        socket.on("drain", more);
        more();
      },
    ],
  ])("an address where a server %s is GitOperationFailed in bounded time", async (_what, greet) => {
    const other = createServer((socket) => {
      socket.on("error", () => undefined);
      greet(socket);
    });
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const { port } = other.address() as AddressInfo;
    keep({ host: `127.0.0.1:${port}`, knownHosts: `[127.0.0.1]:${port} ${host.public}` });
    world.git = new IsomorphicGitRemote({ rules, limits });
    await world.put(specOf({ url: `ssh://git@127.0.0.1:${port}/shop.git` }));
    const start = performance.now();
    expect(await world.ready()).toMatchObject({ reason: "GitOperationFailed" });
    expect(performance.now() - start).toBeLessThan(4000);
    other.close();
  });
});
