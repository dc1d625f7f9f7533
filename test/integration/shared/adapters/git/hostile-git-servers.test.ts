import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import type { GitLimits } from "#shared/adapters/git/git-limits.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { packTypes, writePack } from "#test/support/written-pack.ts";

const rules = addressRules("127.0.0.1");
const oid = "1".repeat(40);
const flush = "0000";

const stops: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

type Answer = (response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

/** Each by the path it is asked at: `/info/refs` for the first request, `/git-upload-pack` for the next. */
async function serve(answers: { readonly refs?: Answer; readonly pack?: Answer }): Promise<string> {
  const { refs = capabilities, pack = (response) => void response.end() } = answers;
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    request.resume();
    await (request.url?.includes("/info/refs") === true ? refs : pack)(response, request);
  });
  const { origin, stop } = await listenOnLoopback(server);
  stops.push(stop);
  return `${origin}/x.git`;
}

function line(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, "0")), bytes]);
}

function band(number: number, content: string | Buffer): Buffer {
  return line(Buffer.concat([Buffer.from([number]), Buffer.from(content)]));
}

const advertised = "application/x-git-upload-pack-advertisement";
const capabilities: Answer = (response) => {
  response.setHeader("content-type", advertised);
  const lines = [
    line("# service=git-upload-pack\n"),
    flush,
    line("version 2\n"),
    line("ls-refs\n"),
    line("fetch=shallow\n"),
    flush,
  ];
  response.end(Buffer.concat(lines.map((each) => Buffer.from(each))));
};

function remote(limits: Partial<GitLimits> = {}): IsomorphicGitRemote {
  return new IsomorphicGitRemote({ rules, limits });
}

function list(url: string, limits: Partial<GitLimits> = { timeoutSeconds: 2 }) {
  return remote(limits).listRefs({ url }, ["refs/heads/main"]);
}

function fetchTree(url: string, limits: Partial<GitLimits> = { timeoutSeconds: 2 }) {
  return remote(limits).fetchTree({ url }, { oid, paths: ["."] });
}

/** Writes until the other side has had enough. */
async function forEver(response: ServerResponse, chunk: Buffer, pauseMs = 0): Promise<void> {
  async function* chunks() {
    for (;;) {
      yield chunk;
      if (pauseMs > 0) await sleep(pauseMs);
    }
  }
  await pipeline(chunks, response).catch(() => {});
}

describe("a server that never ends", () => {
  test("dripping a byte at a time, in a listing", async () => {
    const url = await serve({ refs: (response) => forEver(response, Buffer.from("0"), 20) });
    await expect(list(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
      message: expect.stringContaining("did not answer within 2 s"),
    });
  });

  test("dripping a byte at a time, in a pack", async () => {
    const url = await serve({
      async pack(response) {
        response.write(line("packfile\n"));
        await forEver(response, Buffer.from("0"), 20);
      },
    });
    await expect(fetchTree(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      message: expect.stringContaining("did not answer within 2 s"),
    });
  });

  test("telling its progress", async () => {
    const progress = Buffer.concat(Array.from({ length: 100 }, () => band(2, "Counting objects: 1\r")));
    const url = await serve({
      async pack(response) {
        response.write(line("packfile\n"));
        await forEver(response, progress);
      },
    });
    await expect(fetchTree(url)).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("listing references, also where it does not speak the newer protocol", async () => {
    const ref = line(`${oid} refs/heads/${"n".repeat(200)}\n`);
    const many = Buffer.concat(Array.from({ length: 100 }, () => ref));
    const newer = await serve({ pack: (response) => forEver(response, many) });
    const older = await serve({
      async refs(response) {
        response.setHeader("content-type", advertised);
        response.write(Buffer.concat([line("# service=git-upload-pack\n"), Buffer.from(flush)]));
        response.write(line(`${oid} HEAD\0side-band-64k shallow\n`));
        await forEver(response, many);
      },
    });
    for (const url of [newer, older]) {
      await expect(list(url, { timeoutSeconds: 30, maxListingBytes: 1_000_000 })).rejects.toMatchObject({
        code: "GitTooLarge",
        message: expect.stringContaining("lists more than 1000000 bytes of references; delete references"),
      });
    }
  });

  test("sending packets of one byte", async () => {
    const packets = Buffer.concat(Array.from({ length: 10_000 }, () => band(1, "x")));
    const url = await serve({
      async pack(response) {
        response.write(line("packfile\n"));
        await forEver(response, packets);
      },
    });
    const before = process.memoryUsage().rss;
    await expect(fetchTree(url, { timeoutSeconds: 60, maxPackBytes: 2_000_000 })).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("sends more than 2000000 bytes for one commit"),
    });
    // As views of what came they would take 100 bytes each.
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });

  test("answering 103 again and again", async () => {
    const server = createTcpServer(async (socket: Socket) => {
      socket.on("error", () => {});
      while (!socket.destroyed) {
        socket.write("HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n");
        await sleep(5);
      }
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : "";
    await expect(list(`http://127.0.0.1:${port}/x.git`)).rejects.toMatchObject({ code: "GitOperationFailed" });
  });
});

test("a listing of four million empty lines is not read by anybody", async () => {
  const url = await serve({ pack: (response) => void response.end(Buffer.alloc(16_000_000, "0004")) });
  await expect(list(url, {})).rejects.toMatchObject({
    code: "GitTooLarge",
    message: expect.stringContaining("lists more than 100000 references; delete references"),
  });
});

describe("a server that leads away", () => {
  const targets = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "file:///etc/passwd",
    "//169.254.169.254/x",
  ];
  test.each(targets)("to %s", async (location) => {
    const url = await serve({ refs: (response) => void response.writeHead(302, { location }).end() });
    await expect(list(url)).rejects.toMatchObject({
      code: expect.stringMatching(/^Git/),
      message: expect.stringContaining("redirects to"),
    });
  });

  test("to what is no address at all", async () => {
    const url = await serve({ refs: (response) => void response.writeHead(302, { location: "http://[" }).end() });
    await expect(list(url)).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("from the fetch alone, when the listing was well", async () => {
    const url = await serve({
      pack: (response) => void response.writeHead(307, { location: "http://169.254.169.254/" }).end(),
    });
    await expect(fetchTree(url)).rejects.toMatchObject({
      message: expect.stringContaining("redirects to http://169.254.169.254"),
    });
  });
});

describe("a server that lies", () => {
  test("what it compressed without being asked is not unfolded", async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000));
    const gzipped: Answer = (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
    await expect(list(await serve({ refs: gzipped }))).rejects.toMatchObject({ code: "GitOperationFailed" });
    await expect(fetchTree(await serve({ pack: gzipped }))).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("headers of a megabyte", async () => {
    const url = await serve({
      refs: (response) => void response.writeHead(200, { "x-big": "x".repeat(1_000_000) }).end(),
    });
    await expect(list(url)).rejects.toMatchObject({ code: "GitOperationFailed", retry: "transient" });
  });

  test("long and lively words of its own", async () => {
    const words = "\u001b[2J".padEnd(60_000, "lies ");
    const said: readonly (readonly [code: string, answers: Parameters<typeof serve>[0]])[] = [
      ["GitRefNotFound", { pack: (response) => void response.end(line(`ERR ${words}`)) }],
      [
        "GitOperationFailed",
        { pack: (response) => void response.end(Buffer.concat([line("packfile\n"), band(3, words)])) },
      ],
      ["GitOperationFailed", { refs: (response) => void response.end(words) }],
    ];
    for (const [code, answers] of said) {
      const caught = await fetchTree(await serve(answers)).catch((error: unknown) => error);
      expect(caught).toMatchObject({ code });
      const { message } = caught as Error;
      expect(message.length).toBeLessThan(1000);
      expect(message).not.toContain("\u001b");
    }
  });

  test("an answer that breaks off, and one that is empty", async () => {
    const broken: Answer = (response) =>
      void response.end(Buffer.concat([line("packfile\n"), band(1, "PACK").subarray(0, 6)]));
    await expect(fetchTree(await serve({ pack: broken }))).rejects.toMatchObject({
      message: expect.stringContaining("breaks off"),
    });
    await expect(fetchTree(await serve({}))).rejects.toMatchObject({
      message: expect.stringContaining("no pack of version 2"),
    });
    const garbled: Answer = (response) => void response.end("zzzz");
    await expect(fetchTree(await serve({ pack: garbled }))).rejects.toMatchObject({
      message: expect.stringContaining('sent "zzzz" for a length'),
    });
  });

  test("another commit than the one that was asked for", async () => {
    const pack = writePack([{ type: packTypes.commit, data: Buffer.from(`tree ${"2".repeat(40)}\n\nother\n`) }]);
    const url = await serve({
      pack: (response) => void response.end(Buffer.concat([line("packfile\n"), band(1, pack)])),
    });
    await expect(fetchTree(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      message: expect.stringContaining(`did not send the commit ${oid}`),
    });
  });

  const names: readonly (readonly [legend: string, listed: string, message: string])[] = [
    ["object ids that are none", `${"../".repeat(20)} refs/heads/main`, "without an object id"],
    ["names that a terminal obeys", `${oid} refs/heads/main\u001b[2J`, "no name of a reference"],
    ["where HEAD leads", `${oid} refs/heads/main symref-target:refs/heads/${"x".repeat(5000)}`, "a name of 5011 bytes"],
    ["SHA-256", `${"a".repeat(64)} refs/heads/main`, "SHA-256 objects, which are not supported"],
  ];
  test.each(names)("%s", async (_legend, listed, message) => {
    const url = await serve({
      pack: (response) => void response.end(Buffer.concat([line(`${listed}\n`), Buffer.from(flush)])),
    });
    await expect(list(url)).rejects.toMatchObject({
      code: expect.stringMatching(/^Git/),
      message: expect.stringContaining(message),
    });
  });
});

describe("a server of the old protocol", () => {
  const advertisement =
    (features: string): Answer =>
    (response) => {
      response.setHeader("content-type", advertised);
      const lines = [line("# service=git-upload-pack\n"), flush, line(`${oid} HEAD\0${features}\n`), flush];
      response.end(Buffer.concat(lines.map((each) => Buffer.from(each))));
    };

  test("that cannot fetch one commit alone is not asked for all of them", async () => {
    const url = await serve({ refs: advertisement("side-band-64k") });
    await expect(fetchTree(url)).rejects.toMatchObject({
      message: expect.stringContaining("cannot fetch one commit alone"),
    });
  });
});
