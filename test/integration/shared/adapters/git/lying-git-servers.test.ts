import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import {
  band,
  flush,
  type GitAnswer,
  type GitAnswers,
  line,
  saying,
  speakingV0,
  startScriptedGit,
} from "#test/support/scripted-git.ts";
import { packTypes, writePack } from "#test/support/written-pack.ts";

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

function list(url: string) {
  return new IsomorphicGitRemote({ rules }).listRefs({ url }, ["refs/heads/main"]);
}

function fetchTree(url: string) {
  return new IsomorphicGitRemote({ rules }).fetchTree({ url }, { oid, paths: ["."] });
}

describe("a server that redirects to another host", () => {
  const targets = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "file:///etc/passwd",
    "//169.254.169.254/x",
  ];
  test.each(targets)("a redirect to %s is refused [source.git.redirect]", async (location) => {
    const url = await serve({ refs: (response) => void response.writeHead(302, { location }).end() });
    await expect(list(url)).rejects.toMatchObject({
      code: expect.stringMatching(/^Git/),
      message: expect.stringContaining("redirects to"),
    });
  });

  test("a redirect to an invalid address is refused", async () => {
    const url = await serve({ refs: (response) => void response.writeHead(302, { location: "http://[" }).end() });
    await expect(list(url)).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("a redirect of only the fetch is refused", async () => {
    const url = await serve({
      pack: (response) => void response.writeHead(307, { location: "http://169.254.169.254/" }).end(),
    });
    await expect(fetchTree(url)).rejects.toMatchObject({
      message: expect.stringContaining("redirects to http://169.254.169.254"),
    });
  });
});

describe("a server that lies", () => {
  test("an answer that is compressed without a request is not decompressed", async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000));
    const gzipped: GitAnswer = (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
    await expect(list(await serve({ refs: gzipped }))).rejects.toMatchObject({ code: "GitOperationFailed" });
    await expect(fetchTree(await serve({ pack: gzipped }))).rejects.toMatchObject({ code: "GitOperationFailed" });
  });

  test("a server that sends a megabyte of headers is an error", async () => {
    const url = await serve({
      refs: (response) => void response.writeHead(200, { "x-big": "x".repeat(1_000_000) }).end(),
    });
    await expect(list(url)).rejects.toMatchObject({ code: "GitOperationFailed", retry: "transient" });
  });

  test("a long message of a server is cut, and its escape sequences are removed", async () => {
    const words = "\u001b[2J".padEnd(60_000, "lies ");
    const said: readonly (readonly [code: string, answers: GitAnswers])[] = [
      ["GitRefNotFound", { pack: saying(line(`ERR ${words}`)) }],
      ["GitOperationFailed", { pack: saying(line("packfile\n"), band(3, words)) }],
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

  test("an incomplete, an empty and a garbled answer are errors", async () => {
    const broken = saying(line("packfile\n"), band(1, "PACK").subarray(0, 6));
    await expect(fetchTree(await serve({ pack: broken }))).rejects.toMatchObject({
      message: expect.stringContaining("is incomplete"),
    });
    await expect(fetchTree(await serve({}))).rejects.toMatchObject({
      message: expect.stringContaining("no pack of version 2"),
    });
    const garbled = saying(Buffer.from("zzzz"));
    await expect(fetchTree(await serve({ pack: garbled }))).rejects.toMatchObject({
      message: expect.stringContaining(`sent "zzzz" as a packet's length`),
    });
  });

  test("an answer with another commit than the requested one is an error", async () => {
    const pack = writePack([{ type: packTypes.commit, data: Buffer.from(`tree ${"2".repeat(40)}\n\nother\n`) }]);
    const url = await serve({ pack: saying(line("packfile\n"), band(1, pack)) });
    await expect(fetchTree(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      message: expect.stringContaining(`did not send the commit ${oid}`),
    });
  });

  const names: readonly (readonly [legend: string, listed: string, message: string])[] = [
    ["an object id with a character after it", `${oid}1 refs/heads/main`, "lists refs/heads/main without an object id"],
    [
      "an object id with a character before it",
      `x${oid} refs/heads/main`,
      "lists refs/heads/main without an object id",
    ],
    ["a tag without an object", `${oid} refs/heads/main peeled:none`, "lists refs/heads/main without an object id"],
    ["a long name", `${oid} refs/heads/main${"x".repeat(241)}`, "a name of 256 bytes, refs/heads/mainx"],
    [
      "a name with a wildcard",
      `${oid} refs/heads/main*`,
      "lists refs/heads/main*, which is not the name of a reference",
    ],
    [
      "a HEAD that leads to an invalid name",
      `${oid} refs/heads/main symref-target:refs/heads/a*`,
      "which is not the name of a reference",
    ],
    ["an invalid object id", `${"../".repeat(20)} refs/heads/main`, "without an object id"],
    ["a name with an escape sequence", `${oid} refs/heads/main\u001b[2J`, "not the name of a reference"],
    [
      "a HEAD that leads to a long name",
      `${oid} refs/heads/main symref-target:refs/heads/${"x".repeat(5000)}`,
      "a name of 5011 bytes",
    ],
    ["an object id that only ends like one of SHA-256", `x${"a".repeat(64)} refs/heads/main`, "without an object id"],
    ["an object id that only begins like one of SHA-256", `${"a".repeat(65)} refs/heads/main`, "without an object id"],
    [
      "an object id of SHA-256 [source.git.sha256]",
      `${"a".repeat(64)} refs/heads/main`,
      "SHA-256 objects, which Starling does not support",
    ],
  ];
  test.each(names)("a listing with %s is an error", async (_legend, listed, message) => {
    const url = await serve({ pack: saying(line(`${listed}\n`), flush) });
    await expect(list(url)).rejects.toMatchObject({
      code: expect.stringMatching(/^Git/),
      message: expect.stringContaining(message),
    });
  });
});

test("a server of the old protocol that cannot send a single commit is an error", async () => {
  for (const features of ["side-band-64k", "shallow"]) {
    const url = await serve({ refs: speakingV0(`${oid} HEAD`, features) });
    await expect(fetchTree(url)).rejects.toMatchObject({
      code: "GitOperationFailed",
      message: expect.stringContaining("cannot send a single commit (it lacks side-band-64k or shallow)"),
    });
  }
});
