/** The requests to git servers, and the handling of each sort of answer. */
import { afterEach, describe, expect, test } from "vitest";
import { defaultGitLimits, type GitLimits } from "#shared/adapters/git/git-limits.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import type { SourceCredentials } from "#shared/ports.ts";
import {
  advertised,
  band,
  delimiter,
  flush,
  type GitAnswer,
  type GitAnswers,
  line,
  type ScriptedGit,
  saying,
  speaking,
  speakingV0,
  startScriptedGit,
} from "#test/support/scripted-git.ts";
import { oidOf, packTypes, type WrittenObject, writePack } from "#test/support/written-pack.ts";

const rules = addressRules("127.0.0.1");

const stops: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function serve(answers: GitAnswers): Promise<ScriptedGit> {
  const git = await startScriptedGit(answers);
  stops.push(git.stop);
  return git;
}

const content = Buffer.from("a: 1\n");
const tree = Buffer.concat([Buffer.from("100644 a.yaml\0"), Buffer.from(oidOf("blob", content), "hex")]);
const commit = Buffer.from(
  `tree ${oidOf("tree", tree)}\nauthor Ana <a@x> 1 +0000\ncommitter Ana <a@x> 1 +0000\n\nOne\n`,
);
const objects: readonly WrittenObject[] = [
  { type: packTypes.commit, data: commit },
  { type: packTypes.tree, data: tree },
  { type: packTypes.blob, data: content },
];
const oid = oidOf("commit", commit);
const pack = writePack(objects);
const packSection = [line("packfile\n"), band(1, pack), flush];
const wholePack = saying(...packSection);
const whole = { commit: { oid, subject: "One" }, files: [{ path: "a.yaml", content: new Uint8Array(content) }] };

interface Asking {
  readonly credentials?: SourceCredentials;
  readonly paths?: readonly string[];
  readonly desired?: string;
  readonly limits?: Partial<GitLimits>;
}

function fetchTree({ url }: ScriptedGit, { credentials, paths = ["."], desired = oid, limits = {} }: Asking = {}) {
  const repository = credentials === undefined ? { url } : { url, credentials };
  return new IsomorphicGitRemote({ rules, limits }).fetchTree(repository, { oid: desired, paths });
}

function list({ url }: ScriptedGit, limits: Partial<GitLimits> = {}) {
  return new IsomorphicGitRemote({ rules, limits }).listRefs({ url }, ["refs/heads/main"]);
}

/** The lines of a request, with the special packets between them in brackets. */
function linesOf(body: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < body.length; ) {
    const length = Number.parseInt(body.slice(at, at + 4), 16);
    lines.push(length < 4 ? `[${length}]` : body.slice(at + 4, at + length));
    at += Math.max(length, 4);
  }
  return lines;
}

describe("the request for one commit", () => {
  const { maxContentBytes } = defaultGitLimits;
  const withoutFiles = "filter tree:0";
  const withoutLarge = `filter blob:limit=${maxContentBytes + 1}`;
  const start = ["ofs-delta", "no-progress", "deepen 1"];
  const end = [`want ${oid}`, "done", "[0]"];

  test.each<[string, GitAnswer, readonly string[], readonly string[]]>([
    ["a server without features", speaking("fetch"), ["."], ["command=fetch", "[1]", ...start, ...end]],
    [
      "a server that cannot leave files out",
      speaking("fetch=shallow x-filter"),
      ["."],
      ["command=fetch", "[1]", ...start, ...end],
    ],
    [
      "a server that can leave large files out",
      speaking("fetch=shallow filter"),
      ["."],
      ["command=fetch", "[1]", ...start, withoutLarge, ...end],
    ],
    [
      "a server that can leave out the files outside of the paths",
      speaking("fetch=shallow filter"),
      ["a"],
      ["command=fetch", "[1]", ...start, "filter blob:none", ...end],
    ],
    [
      "a server, without the files of the commit,",
      speaking("fetch=filter"),
      [],
      ["command=fetch", "[1]", ...start, withoutFiles, ...end],
    ],
    [
      "a server that names its kind of object ids",
      speaking("fetch", "object-format=sha1"),
      ["."],
      ["command=fetch", "object-format=sha1", "[1]", ...start, ...end],
    ],
  ])("one commit is requested from %s", async (_what, refs, paths, lines) => {
    const git = await serve({ refs, pack: wholePack });
    const got = await fetchTree(git, { paths });
    expect(got).toMatchObject({ ...whole, files: paths.includes(".") ? whole.files : [] });
    expect(git.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "GET /x.git/info/refs?service=git-upload-pack",
      "POST /x.git/git-upload-pack",
    ]);
    expect(linesOf(git.requests[1]?.body ?? "")).toEqual(lines);
    expect(git.requests[1]?.headers).toMatchObject({
      "content-type": "application/x-git-upload-pack-request",
      accept: "application/x-git-upload-pack-result",
      "git-protocol": "version=2",
      "user-agent": "git/starling",
      "content-length": String(git.requests[1]?.body.length),
    });
  });

  const head = `${oid} HEAD`;
  test.each<[string, string, readonly string[], readonly string[]]>([
    [
      "with all features that Starling uses",
      "multi_ack_detailed no-done side-band-64k thin-pack ofs-delta shallow no-progress",
      ["."],
      [`want ${oid} multi_ack_detailed no-done side-band-64k ofs-delta no-progress shallow\n`, "deepen 1\n"],
    ],
    [
      "with only the necessary features",
      "side-band-64k shallow",
      ["."],
      [`want ${oid} side-band-64k shallow\n`, "deepen 1\n"],
    ],
    [
      "that can leave large files out",
      "side-band-64k shallow filter",
      ["."],
      [`want ${oid} side-band-64k shallow filter\n`, "deepen 1\n", `${withoutLarge}\n`],
    ],
    [
      "without its files",
      "side-band-64k shallow filter",
      [],
      [`want ${oid} side-band-64k shallow filter\n`, "deepen 1\n", `${withoutFiles}\n`],
    ],
  ])("one commit is requested from a server of the old protocol %s", async (_what, features, paths, lines) => {
    for (const said of ["NAK\n", `ACK ${oid}\n`]) {
      const shallow = [line(`shallow ${oid}\n`), flush, line(`ACK ${oid} ready\n`)];
      const git = await serve({
        refs: speakingV0(head, features),
        pack: saying(...shallow, line(said), band(1, pack), flush),
      });
      expect(await fetchTree(git, { paths })).toMatchObject({
        ...whole,
        files: paths.includes(".") ? whole.files : [],
      });
      expect(linesOf(git.requests[1]?.body ?? "")).toEqual([...lines, "[0]", "done\n"]);
      expect(git.requests[1]?.headers).not.toHaveProperty("git-protocol");
    }
  });

  test.each<[string, SourceCredentials | undefined, string | undefined]>([
    ["without credentials", undefined, undefined],
    ["with a token", { kind: "bearer", token: "t0k3n" }, "Bearer t0k3n"],
    ["with a password", { kind: "basic", username: "ana", password: "s3cret" }, "Basic YW5hOnMzY3JldA=="],
  ])("one commit is requested %s", async (_what, credentials, authorization) => {
    const git = await serve({ pack: wholePack });
    await fetchTree(git, credentials === undefined ? {} : { credentials });
    expect(git.requests.map(({ headers }) => headers.authorization)).toEqual([authorization, authorization]);
  });
});

describe("the answer with a commit", () => {
  test("the pack is read without the sections before it and the messages within it", async () => {
    const sections = [line("shallow-info\n"), line(`shallow ${oid}\n`), delimiter, line("packfile\n")];
    const half = Math.floor(pack.length / 2);
    const bands = [
      band(2, "Counting objects: 3, done.\n"),
      band(1, pack.subarray(0, half)),
      band(2, "x"),
      band(1, pack.subarray(half)),
    ];
    const git = await serve({ pack: saying(...sections, ...bands, flush) });
    expect(await fetchTree(git)).toMatchObject(whole);
  });

  test("a pack of exactly the allowed size is read, and one byte more is an error", async () => {
    const git = await serve({ pack: wholePack });
    expect(await fetchTree(git, { limits: { maxPackBytes: pack.length } })).toMatchObject(whole);
    await expect(fetchTree(git, { limits: { maxPackBytes: pack.length - 1 } })).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining(
        `sends more than ${pack.length - 1} bytes for one commit; narrow spec.paths, if`,
      ),
    });
  });

  const because = "upload-pack: not our ref";
  const failing = (status: number, location?: string): GitAnswer => {
    return (response) => void response.writeHead(status, location === undefined ? {} : { location }).end();
  };
  const noListing: GitAnswer = (response) => void response.setHeader("content-type", advertised).end("0008none");
  test.each<[string, GitAnswers, string, string, string]>([
    [
      "an answer without the commit",
      { pack: saying(line(`ERR ${because}\n`)) },
      "GitRefNotFound",
      "permanent",
      `does not have ${oid}: ${because}; push it, or correct spec.git.ref`,
    ],
    [
      "an error in the middle of the answer",
      { pack: saying(line("packfile\n"), band(3, "out of memory")) },
      "GitOperationFailed",
      "transient",
      "the git server reported an error: out of memory; check",
    ],
    [
      "401",
      { pack: failing(401) },
      "GitAuthenticationFailed",
      "permanent",
      "(HTTP 401): it needs credentials, or does",
    ],
    [
      "403",
      { pack: failing(403) },
      "GitAuthenticationFailed",
      "permanent",
      "(HTTP 403): it needs credentials, or does",
    ],
    ["404", { pack: failing(404) }, "GitNotFound", "permanent", "(HTTP 404): check spec.git.url, and whether the"],
    ["410", { refs: failing(410) }, "GitNotFound", "permanent", "(HTTP 410): check spec.git.url"],
    ["503", { pack: failing(503) }, "GitOperationFailed", "transient", "could not be fetched: HTTP Error: 503"],
    ["204", { pack: failing(204) }, "GitOperationFailed", "transient", "could not be fetched: HTTP Error: 204"],
    // The status 304 is no redirect, even with a location.
    ["304", { pack: failing(304, "/y.git") }, "GitOperationFailed", "transient", "HTTP Error: 304"],
    ["300", { pack: failing(300) }, "GitOperationFailed", "transient", "HTTP Error: 300"],
    ["an invalid listing", { refs: noListing }, "GitOperationFailed", "transient", "could not be fetched: "],
    [
      "an HTML page",
      { refs: saying(Buffer.from("<html>")) },
      "GitOperationFailed",
      "permanent",
      "does not answer like a git",
    ],
  ])("the error for %s has its code and the next step", async (_what, answers, code, retry, message) => {
    const git = await serve(answers);
    const caught = await fetchTree(git).catch((error: unknown) => error);
    expect(caught).toMatchObject({ code, retry, message: expect.stringContaining(message) });
    expect((caught as Error).message).not.toContain("certificate");
  });

  test("the error for refused credentials asks to renew the secret", async () => {
    const git = await serve({ refs: failing(403) });
    const credentials = { kind: "bearer", token: "t0k3n" } as const;
    await expect(fetchTree(git, { credentials })).rejects.toMatchObject({
      code: "GitAuthenticationFailed",
      message: `${git.url} refused access (HTTP 403): the credentials are wrong or may not read it; renew the secret`,
    });
  });
});

describe("a repository that moved on its host", () => {
  /** Redirects over this number of addresses. */
  const moving =
    (hops: number): GitAnswer =>
    (response, { url = "" }) => {
      const at = Number(/^\/x(\d*)\.git/.exec(url)?.[1] ?? 0);
      if (at === hops) return speaking("ls-refs", "fetch=shallow")(response, {} as never);
      response.writeHead(at % 2 === 0 ? 301 : 399, { location: `/x${at + 1}.git/info/refs` }).end();
    };

  test("a moved repository is followed over three addresses, and then fetched at the last one", async () => {
    const git = await serve({ refs: moving(3), pack: wholePack });
    expect(await fetchTree(git)).toMatchObject(whole);
    expect(git.requests.map(({ url }) => url.split("/")[1])).toEqual(["x.git", "x1.git", "x2.git", "x3.git", "x3.git"]);
  });

  test("a fourth redirect is an error", async () => {
    const git = await serve({ refs: moving(4) });
    await expect(fetchTree(git)).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
      message: expect.stringContaining("redirects in a cycle"),
    });
    expect(git.requests).toHaveLength(4);
  });
});

describe("references", () => {
  const refs = (...lines: readonly string[]) => ({ pack: saying(...lines.map((each) => line(`${each}\n`)), flush) });

  test("only the requested references are listed, though the server sends more", async () => {
    const git = await serve(refs(`${oid} refs/heads/main`, `${oid} refs/tags/v1`, `${oid} refs/heads/main-2`));
    expect(await list(git)).toEqual([
      { ref: "refs/heads/main", oid },
      { ref: "refs/heads/main-2", oid },
    ]);
  });

  test("the largest allowed number of references, with the longest allowed names, is listed", async () => {
    const long = `refs/heads/main${"x".repeat(240)}`;
    const git = await serve(refs(`${oid} refs/heads/main`, `${oid} ${long}`));
    expect(await list(git, { maxRefs: 2 })).toMatchObject([{}, { ref: long }]);
    await expect(list(git, { maxRefs: 1 })).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("lists 2 references; at most 1 are read; delete references"),
    });
  });

  test("a repository without the requested references does not count as empty", async () => {
    expect(await list(await serve(refs(`${oid} refs/tags/v1`)))).toEqual([]);
    await expect(list(await serve(refs()))).rejects.toMatchObject({
      code: "EmptyGitRepository",
      retry: "permanent",
      message: expect.stringContaining("is empty: it has no branch and no tag; push a commit to it"),
    });
  });
});

describe("tags of tags", () => {
  function tagged(depth: number) {
    const tags: WrittenObject[] = [];
    let at = oid;
    for (let level = 0; level < depth; level++) {
      const data = Buffer.from(`object ${at}\ntype ${level === 0 ? "commit" : "tag"}\ntag t\n\nt\n`);
      tags.push({ type: packTypes.tag, data });
      at = oidOf("tag", data);
    }
    const answer = saying(line("packfile\n"), band(1, writePack([...tags, ...objects])), flush);
    return { desired: at, answer };
  }

  test.each([1, 10])("a chain of %i tags leads to the commit", async (depth) => {
    const { desired, answer } = tagged(depth);
    expect(await fetchTree(await serve({ pack: answer }), { desired })).toMatchObject(whole);
  });

  test("a chain of eleven tags is refused", async () => {
    const { desired, answer } = tagged(11);
    await expect(fetchTree(await serve({ pack: answer }), { desired })).rejects.toMatchObject({
      code: "GitTooLarge",
      message: `${desired} is a tag that leads through more than 10 other tags; tag the commit itself`,
    });
  });
});
