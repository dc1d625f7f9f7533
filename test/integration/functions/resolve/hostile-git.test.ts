/** A git server lies, over HTTP and SSH: bounded bytes are taken, each refusal has a name, and the last artifact stays. */
import type { ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import type { Writable } from "node:stream";
import type { ServerChannel } from "ssh2";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type RawEntry, type RawRepository, rawRepository } from "#test/support/raw-repository.ts";
import { band, flush, type GitAnswers, line, startScriptedGit } from "#test/support/scripted-git.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { newKeyPair, startSshGitServer } from "#test/support/ssh-git-server.ts";
import { appendingDelta, distance, packTypes, writePack } from "#test/support/written-pack.ts";

const mib = 1024 * 1024;
/** Bytes that are on their way in the sockets when a reader leaves. */
const onTheWay = 16 * mib;
const rules = addressRules("127.0.0.1");
const secret = "starling/git/shop";
const listed = "1".repeat(40);
const host = newKeyPair();
const user = newKeyPair();

let server: OwnGitServer;
let made: RawRepository;
let world: SourceWorld;
let first: object | undefined;
/** Bytes that a hostile server has written. */
let written: number;

beforeEach(async () => {
  server = await startOwnGitServer();
  await server.createRepository("app");
  made = rawRepository(server.root, "app");
  await made.commit(await made.tree([{ mode: "100644", name: "a.yaml", oid: await made.blob("a: 1\n") }]));
  written = 0;
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules, limits: { timeoutSeconds: 20 } });
  await world.put({ git: { url: server.url("app"), ref: { branch: "main" } } });
  first = (await world.resolve()).status.artifact;
  expect(first).toMatchObject({ files: 1 });
});
afterEach(async () => {
  await server.stop();
});

/** Resolves the Source again. @returns its condition Ready. */
async function refused() {
  const { status } = await world.resolve();
  expect(status.artifact).toEqual(first);
  expect(world.errors).toEqual([]);
  return status.conditions.find(({ type }) => type === "Ready");
}

/** Writes until the reader goes away. */
function forEver(stream: Writable, piece: string | Buffer): void {
  const block = Buffer.alloc(Math.ceil(65_536 / piece.length) * piece.length, piece);
  const more = () => {
    while (stream.writable && !stream.destroyed) {
      written += block.length;
      if (!stream.write(block)) return void stream.once("drain", more);
    }
  };
  stream.on("error", () => undefined);
  more();
}

const endless = (beginning: Buffer, piece: Buffer) => (response: ServerResponse) => {
  response.write(beginning);
  forEver(response, piece);
};

describe("a git server over HTTP that lies", () => {
  async function against(pack: (response: ServerResponse) => void, listing = [line(`${listed} refs/heads/main\n`)]) {
    const answers: GitAnswers = {
      pack(response) {
        // The listing is the first question to this path.
        if (isFirst && listing.length > 0) response.end(Buffer.concat([...listing, flush]));
        else pack(response);
        isFirst = false;
      },
    };
    let isFirst = true;
    const { url, stop } = await startScriptedGit(answers);
    onTestFinished(stop);
    await world.put({ git: { url, ref: { branch: "main" } } });
    return refused();
  }
  const sent = (bytes: Buffer) => (response: ServerResponse) =>
    void response.end(Buffer.concat([line("packfile\n"), band(1, bytes), flush]));
  const blob = { type: packTypes.blob, data: Buffer.from("a: 1\n") };

  test.each<[string, Buffer]>([
    ["that is none", Buffer.from("PICK")],
    ["without its end", writePack([blob]).subarray(0, 20)],
    ["with another checksum", Buffer.concat([writePack([blob]).subarray(0, -1), Buffer.from([0])])],
    ["without the commit", writePack([blob])],
    [
      "with a delta before the pack",
      writePack([{ type: packTypes.ofsDelta, data: appendingDelta(5, "more"), base: distance(9999) }]),
    ],
  ])("a pack %s is refused by name [source.hostile.malformed]", async (_what, pack) => {
    expect(await against(sent(pack))).toMatchObject({
      reason: "GitOperationFailed",
      message: expect.stringMatching(/pack|did not send|git server/),
    });
  });

  test("a pack for ever is left at its limit [source.hostile.endless]", async () => {
    world.git = new IsomorphicGitRemote({ rules, limits: { maxPackBytes: 8 * mib } });
    expect(await against(endless(line("packfile\n"), band(1, Buffer.alloc(1000))))).toMatchObject({
      reason: "GitTooLarge",
      message: expect.stringContaining("sends more than 8388608 bytes for one commit; narrow spec.paths"),
    });
    expect(written).toBeLessThan(8 * mib + onTheWay);
  });

  test.each<[string, Buffer, Buffer]>([
    ["progress", line("packfile\n"), band(2, "Counting objects: 1\r")],
    ["empty packets of a pack", line("packfile\n"), band(1, "")],
    ["lines before a pack", Buffer.alloc(0), line("shallow-info\n")],
  ])("%s for ever are left after 16 MiB", async (_what, beginning, piece) => {
    expect(await against(endless(beginning, piece))).toMatchObject({
      reason: "GitOperationFailed",
      message: expect.stringContaining("sends more than 16 MiB beside the pack; check the git server"),
    });
    expect(written).toBeLessThan(16 * mib + onTheWay);
  });

  test("references for ever are left after 16 MiB", async () => {
    const ref = line(`${listed} refs/heads/${"n".repeat(200)}\n`);
    expect(await against(endless(Buffer.alloc(0), ref), [])).toMatchObject({
      reason: "GitTooLarge",
      message: expect.stringContaining("delete references that nobody needs"),
    });
    expect(written).toBeLessThan(16 * mib + onTheWay);
  });

  test("100,001 references are refused with their number [source.hostile.malformed]", async () => {
    const refs = Array.from({ length: 100_001 }, (_, index) => line(`${listed} refs/heads/main${index}\n`));
    expect(await against(() => undefined, refs)).toMatchObject({
      reason: "GitTooLarge",
      message: expect.stringMatching(/100001 references; at most 100000 are read; delete references/),
    });
  });
});

describe("a tree that is no folder", () => {
  const file = (name: string, mode: RawEntry["mode"] = "100644") => ({ mode, name });
  test.each<[string, readonly { readonly name: string; readonly mode: RawEntry["mode"] }[], RegExp]>([
    ["with ..", [file("..")], /not a valid file name on every system; rename it, or narrow spec.paths/],
    ["with a path", [file("../../etc/passwd")], /not a valid file name on every system/],
    ["with a line feed", [file("b\nc.yaml")], /not a valid file name on every system/],
    ["with a name twice", [file("b.yaml"), file("b.yaml")], /twice/],
    ["with a file and a folder of one name", [file("b"), file("b", "40000")], /twice/],
    ["with a device", [file("b", "60000")], /has the mode 60000, which is not a file's; remove it/],
    ["with a submodule", [file("b", "160000")], /is a submodule/],
  ])("a tree %s is refused by its path [source.hostile.malformed]", async (_what, entries, message) => {
    const blob = await made.blob("b: 1\n");
    const folder = await made.tree([{ mode: "100644", name: "c.yaml", oid: blob }]);
    await made.commit(
      await made.tree(entries.map((each) => ({ ...each, oid: each.mode === "40000" ? folder : blob }))),
    );
    expect(await refused()).toMatchObject({ reason: "GitPathRefused", message: expect.stringMatching(message) });
  });

  test("a folder .git is no part of the artifact", async () => {
    const oid = await made.blob("b: 1\n");
    const git = await made.tree([{ mode: "100644", name: "config.yaml", oid }]);
    await made.commit(
      await made.tree([
        { mode: "40000", name: ".git", oid: git },
        { mode: "100644", name: "b.yaml", oid },
      ]),
    );
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect((await world.files()).map(({ path }) => path)).toEqual(["b.yaml"]);
  });
});

describe("a server over SSH that lies", () => {
  async function against(port: number) {
    const knownHosts = `[127.0.0.1]:${port} ${host.public}`;
    world.secrets.set(secret, JSON.stringify({ host: `127.0.0.1:${port}`, privateKey: user.private, knownHosts }));
    const url = `ssh://git@127.0.0.1:${port}/shop.git`;
    await world.put({ git: { url, ref: { branch: "main" }, credentials: { secret, kind: "ssh" } } });
    return refused();
  }

  test.each([
    ["lines before its name", "hello\r\n"],
    ["one line before its name", "x"],
    ["its name", "SSH-2.0-"],
    ["packets of nothing", "SSH-2.0-x\r\n\0\0\0\0"],
  ])("%s for ever ends within the limits", async (_what, piece) => {
    const { port, stop } = await serveTcp((socket) => forEver(socket, piece));
    onTestFinished(stop);
    expect(await against(port)).toMatchObject({ reason: "GitOperationFailed" });
    expect(written).toBeLessThan(onTheWay);
  });

  const reference = line(`${listed} refs/heads/${"n".repeat(200)}\n`);
  test.each<[string, object, number, (channel: ServerChannel) => void]>([
    [
      "references",
      { reason: "GitTooLarge", message: expect.stringContaining("lists more than 16777216 bytes of references") },
      16 * mib,
      (channel) => forEver(channel, reference),
    ],
    [
      "errors",
      { reason: "GitOperationFailed", message: expect.stringContaining("writes more than 1 MiB of errors") },
      mib,
      (channel) => forEver(channel.stderr, "warning\n"),
    ],
  ])("%s for ever end within the limits", async (_what, ready, most, disturb) => {
    const { port, stop } = await startSshGitServer({ root: server.root, hostKey: host, users: [user], disturb });
    onTestFinished(stop);
    expect(await against(port)).toMatchObject(ready);
    expect(written).toBeLessThan(most + onTheWay);
  });
});

async function serveTcp(greet: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const hostile = createServer((socket) => {
    sockets.add(socket);
    greet(socket);
  });
  await new Promise<void>((done) => hostile.listen(0, "127.0.0.1", done));
  const address = hostile.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    stop() {
      for (const socket of sockets) socket.destroy();
      hostile.close();
    },
  };
}
