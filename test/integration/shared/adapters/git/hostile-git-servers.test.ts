import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { GitLimits } from "#shared/adapters/git/git-limits.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { advertised, band, flush, type GitAnswers, line, startScriptedGit } from "#test/support/scripted-git.ts";

const rules = addressRules("127.0.0.1");
const oid = "1".repeat(40);

const stops: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function serve(answers: GitAnswers): Promise<string> {
  const { url, stop } = await startScriptedGit(answers);
  stops.push(stop);
  return url;
}

function remote(limits: Partial<GitLimits> = {}): IsomorphicGitRemote {
  return new IsomorphicGitRemote({ rules, limits });
}

function list(url: string, limits: Partial<GitLimits> = { timeoutSeconds: 2 }) {
  return remote(limits).listRefs({ url }, ["refs/heads/main"]);
}

function fetchTree(url: string, limits: Partial<GitLimits> = { timeoutSeconds: 2 }) {
  return remote(limits).fetchTree({ url }, { oid, paths: ["."] });
}

/** Writes until the other side closes the connection. */
async function forEver(response: ServerResponse, chunk: Buffer, pauseMs = 0): Promise<void> {
  async function* chunks() {
    for (;;) {
      yield chunk;
      if (pauseMs > 0) await sleep(pauseMs);
    }
  }
  await pipeline(chunks, response).catch(() => {});
}

describe("a server that never ends its answer", () => {
  test("a listing that arrives a byte at a time is cut off after the timeout [source.hostile.endless]", async () => {
    const url = await serve({ refs: (response) => forEver(response, Buffer.from("0"), 20) });
    await expect(list(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
      message: expect.stringContaining("did not answer within 2 s"),
    });
  });

  test("a pack that arrives a byte at a time is cut off after the timeout [source.hostile.endless]", async () => {
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

  test("an endless report of progress is cut off", async () => {
    const progress = Buffer.concat(Array.from({ length: 100 }, () => band(2, "Counting objects: 1\r")));
    const url = await serve({
      async pack(response) {
        response.write(line("packfile\n"));
        await forEver(response, progress);
      },
    });
    await expect(fetchTree(url)).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("an endless listing of references is cut off in both protocols", async () => {
    const ref = line(`${oid} refs/heads/${"n".repeat(200)}\n`);
    const many = Buffer.concat(Array.from({ length: 100 }, () => ref));
    const newer = await serve({ pack: (response) => forEver(response, many) });
    const older = await serve({
      async refs(response) {
        response.setHeader("content-type", advertised);
        response.write(Buffer.concat([line("# service=git-upload-pack\n"), flush]));
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

  test("an endless pack in packets of one byte is cut off, and takes little memory", async () => {
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
    // If the packets were kept as views of the received bytes, each would take 100 bytes.
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });

  test("an endless series of 103 answers is cut off", async () => {
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

test("a listing of four million empty lines is refused", async () => {
  const url = await serve({ pack: (response) => void response.end(Buffer.alloc(16_000_000, "0004")) });
  await expect(list(url, {})).rejects.toMatchObject({
    code: "GitTooLarge",
    message: expect.stringContaining("lists more than 100000 references; delete references"),
  });
});

test("100,000 annotated tags are listed, and one more is refused by name", async () => {
  const tags = (count: number) =>
    Buffer.concat(Array.from({ length: count }, (_, index) => line(`${oid} refs/tags/v1.0.${index} peeled:${oid}\n`)));
  for (const [count, listed] of [
    [100_000, true],
    [100_001, false],
  ] as const) {
    const answer = Buffer.concat([tags(count), flush]);
    const url = await serve({ pack: (response) => void response.end(answer) });
    const listing = remote({}).listRefs({ url }, ["refs/tags/"]);
    if (listed) expect(await listing).toHaveLength(count);
    else await expect(listing).rejects.toMatchObject({ code: "GitTooLarge" });
  }
});
