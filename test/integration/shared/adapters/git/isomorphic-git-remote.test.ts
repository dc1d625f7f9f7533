import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { serveHttpBackend } from "#local/git/http-backend.ts";
import type { GitLimits } from "#shared/adapters/git/git-limits.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";

const at = new Date("2026-01-02T03:04:05Z");
const rules = addressRules("127.0.0.1");

let root: string;
let ca: string;
let server: GitServer;
let closed: GitServer;
let remote: IsomorphicGitRemote;
let first: string;
let second: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-git-server-"));
  const tls = await createTlsCertificate();
  ca = tls.cert;
  server = await startGitServer({ root: join(root, "open"), tls });
  closed = await startGitServer({
    root: join(root, "closed"),
    tls,
    credentials: { username: "x-access-token", password: "s3cret" },
  });
  remote = new IsomorphicGitRemote({ rules, ca });
  await server.createRepository("fleet");
  first = await server.commitFiles(
    "fleet",
    {
      "deploy/app.yaml": "a: 1\n",
      "deploy/run.sh": { executable: "#!/bin/sh\n" },
      "deploy/link.yaml": { symlink: "../base/base.yaml" },
      "base/base.yaml": "b: 1\n",
      "README.md": "# hello\n",
      ".gitignore": "x\n",
      "logo.png": new Uint8Array([0, 255, 1]),
      "bin.dat": new Uint8Array([0, 255, 1]),
    },
    { message: "First\n\nwith a body", at, tag: { name: "v1.0.0", message: "Release" } },
  );
  second = await server.commitFiles("fleet", { "deploy/app.yaml": "a: 2\n" }, { message: "Second", at, tag: "v1.1.0" });
  await server.commitFiles("fleet", { "x.yaml": "x: 1\n" }, { message: "Third", at, branch: "main-2" });
  await server.createRepository("empty");
  await closed.createRepository("secret", { "a.yaml": "a: 1\n" });
});

afterAll(async () => {
  await server?.stop();
  await closed?.stop();
  await rm(root, { recursive: true, force: true });
});

function repository(name: string) {
  return { url: server.url(name) };
}

function limited(limits: Partial<GitLimits>): IsomorphicGitRemote {
  return new IsomorphicGitRemote({ rules, ca, limits });
}

describe("listRefs", () => {
  test("listRefs returns the references with the prefix", async () => {
    const refs = await remote.listRefs(repository("fleet"), ["refs/heads/main"]);
    expect(refs.map(({ ref }) => ref)).toEqual(["refs/heads/main", "refs/heads/main-2"]);
    expect(refs[0]).toEqual({ ref: "refs/heads/main", oid: second });
  });

  test("listRefs returns the commit of an annotated tag [source.reference.revision]", async () => {
    const tags = await remote.listRefs(repository("fleet"), ["refs/tags/"]);
    expect(tags).toMatchObject([
      { ref: "refs/tags/v1.0.0", peeled: first },
      { ref: "refs/tags/v1.1.0", oid: second },
    ]);
    expect(tags[0]?.oid).not.toBe(first);
    expect(tags[1]).not.toHaveProperty("peeled");
  });

  test("listRefs returns the branch of HEAD", async () => {
    expect(await remote.listRefs(repository("fleet"), ["HEAD"])).toEqual([
      { ref: "HEAD", oid: second, target: "refs/heads/main" },
    ]);
  });

  test("listRefs accepts several prefixes", async () => {
    const refs = await remote.listRefs(repository("fleet"), ["HEAD", "refs/tags/v1.1", "refs/heads/main-"]);
    expect(refs.map(({ ref }) => ref).sort()).toEqual(["HEAD", "refs/heads/main-2", "refs/tags/v1.1.0"]);
  });

  test("listRefs returns nothing if no reference has the prefix", async () => {
    expect(await remote.listRefs(repository("fleet"), ["refs/heads/missing"])).toEqual([]);
  });

  test("listRefs reports an empty repository", async () => {
    await expect(remote.listRefs(repository("empty"), ["HEAD"])).rejects.toMatchObject({ code: "EmptyGitRepository" });
  });

  test("listRefs reports a missing repository", async () => {
    await expect(remote.listRefs(repository("missing"), ["HEAD"])).rejects.toMatchObject({
      code: "GitNotFound",
      message: expect.stringContaining("was not found (HTTP 404): check spec.git.url"),
    });
  });
});

describe("fetchTree", () => {
  test("fetchTree returns the commit and the files below the paths", async () => {
    const tree = await remote.fetchTree(repository("fleet"), { oid: first, paths: ["deploy"] });
    expect(tree.commit).toEqual({
      oid: first,
      subject: "First",
      authorName: "Starling Local",
      authorEmail: "local@starling.invalid",
      committedAt: "2026-01-02T03:04:05.000Z",
    });
    expect(
      tree.files.map(({ path, executable, content }) => [path, executable, Buffer.from(content).toString()]),
    ).toEqual([
      ["deploy/app.yaml", false, "a: 1\n"],
      ["deploy/link.yaml", false, "b: 1\n"],
      ["deploy/run.sh", true, "#!/bin/sh\n"],
    ]);
  });

  test("fetchTree of the whole repository returns all files except media and those of version control", async () => {
    const tree = await remote.fetchTree(repository("fleet"), { oid: second, paths: ["."] });
    expect(tree.files.map(({ path }) => path)).toEqual([
      "README.md",
      "base/base.yaml",
      "bin.dat",
      "deploy/app.yaml",
      "deploy/link.yaml",
      "deploy/run.sh",
    ]);
    expect(tree.files.find(({ path }) => path === "bin.dat")?.content).toEqual(new Uint8Array([0, 255, 1]));
  });

  test("fetchTree leaves nothing in the temporary folder", async () => {
    // The test has its own folder, because other suites fetch at the same time.
    const own = await mkdtemp(join(tmpdir(), "starling-test-"));
    vi.stubEnv("TMPDIR", own);
    try {
      await remote.fetchTree(repository("fleet"), { oid: first, paths: [] });
      await expect(remote.fetchTree(repository("fleet"), { oid: "0".repeat(40), paths: [] })).rejects.toThrow();
      expect(await readdir(own)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      await rm(own, { recursive: true, force: true });
    }
  });

  test("fetchTree reports a commit that does not exist", async () => {
    await expect(remote.fetchTree(repository("fleet"), { oid: "1".repeat(40), paths: ["."] })).rejects.toMatchObject({
      code: expect.stringMatching(/^Git/),
      message: expect.stringContaining(server.url("fleet")),
    });
  });

  const limits: readonly (readonly [legend: string, limits: Partial<GitLimits>, message: string])[] = [
    ["the number of files", { maxFiles: 3 }, "more than 3 files; narrow spec.paths"],
    ["the size of the files", { maxContentBytes: 10 }, "more than 10 bytes; narrow spec.paths"],
    [
      "the size of the pack",
      { maxPackBytes: 100 },
      "sends more than 100 bytes for one commit; narrow spec.paths, if the git server",
    ],
  ];
  test.each(limits)("fetchTree limits %s [source.files.limits]", async (_legend, bounds, message) => {
    await expect(limited(bounds).fetchTree(repository("fleet"), { oid: second, paths: ["."] })).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining(message),
    });
  });
});

describe("the time that the caller has left", () => {
  test("the time left may have a fraction of a millisecond", async () => {
    const hurried = { ...repository("fleet"), timeLeftMs: () => 19_628.25 };
    expect(await remote.listRefs(hurried, ["HEAD"])).toHaveLength(1);
    expect((await remote.fetchTree(hurried, { oid: first, paths: ["base"] })).files).toHaveLength(1);
  });

  test("a request fails at once if no time is left", async () => {
    const late = { ...repository("fleet"), timeLeftMs: () => -5 };
    const error = { code: "GitOperationFailed", message: expect.stringContaining("did not answer within 0 s") };
    await expect(remote.listRefs(late, ["HEAD"])).rejects.toMatchObject(error);
    await expect(remote.fetchTree(late, { oid: first, paths: ["base"] })).rejects.toMatchObject(error);
  });
});

describe("credentials", () => {
  const right = { kind: "basic", username: "x-access-token", password: "s3cret" } as const;

  test("credentials are sent, and give access", async () => {
    const repository = { url: closed.url("secret"), credentials: right };
    const [head] = await remote.listRefs(repository, ["HEAD"]);
    const tree = await remote.fetchTree(repository, { oid: head?.oid ?? "", paths: ["."] });
    expect(tree.files.map(({ path }) => path)).toEqual(["a.yaml"]);
  });

  test("missing and wrong credentials are distinguished, and never shown", async () => {
    await expect(remote.listRefs({ url: closed.url("secret") }, ["HEAD"])).rejects.toMatchObject({
      code: "GitAuthenticationFailed",
      message: expect.stringContaining("it needs credentials, or does not exist"),
    });
    const wrong = { ...right, password: "wr0ng" };
    await expect(remote.listRefs({ url: closed.url("secret"), credentials: wrong }, ["HEAD"])).rejects.toMatchObject({
      code: "GitAuthenticationFailed",
      message: expect.not.stringContaining("wr0ng"),
    });
  });
});

describe("the network", () => {
  test("a private address is refused unless it is allowed", async () => {
    const strict = new IsomorphicGitRemote({ rules: addressRules(""), ca });
    await expect(strict.listRefs(repository("fleet"), ["HEAD"])).rejects.toMatchObject({ code: "AddressRefused" });
    const byName = { url: server.url("fleet").replace("127.0.0.1", "localhost") };
    await expect(strict.listRefs(byName, ["HEAD"])).rejects.toMatchObject({ code: "AddressRefused" });
    expect(await remote.listRefs(byName, ["HEAD"])).toHaveLength(1);
  });

  test("an unknown certificate is refused, with the remedy [source.git.certificate]", async () => {
    const distrusting = new IsomorphicGitRemote({ rules });
    await expect(distrusting.listRefs(repository("fleet"), ["HEAD"])).rejects.toMatchObject({
      code: "GitOperationFailed",
      message: expect.stringContaining("trust the certificate of its authority"),
    });
  });

  describe("an unusual server", () => {
    let web: Server;
    let origin: string;

    beforeAll(async () => {
      web = createServer((request, response) => {
        if (request.url?.startsWith("/elsewhere"))
          response.writeHead(302, { location: "http://127.0.0.2/x/info/refs" }).end();
        else if (request.url?.startsWith("/circle")) response.writeHead(302, { location: request.url }).end();
        else if (request.url?.startsWith("/renamed"))
          response.writeHead(301, { location: `${request.url.replace("renamed", "page")}` }).end();
        else if (request.url?.startsWith("/broken")) response.writeHead(503).end();
        else if (request.url?.startsWith("/fleet.git/"))
          void serveHttpBackend({ root: join(root, "open"), request, response });
        else if (request.url?.startsWith("/old.git/") && request.method === "GET")
          response.writeHead(301, { location: request.url.replace("old", "fleet") }).end();
        else if (request.url?.startsWith("/v0/")) {
          delete request.headers["git-protocol"];
          request.url = request.url.slice("/v0".length);
          // A refused client closes the connection.
          serveHttpBackend({ root: join(root, "open"), request, response }).catch(() => {});
        } else if (!request.url?.startsWith("/silent")) response.end("<html>hello</html>");
      }).listen(0, "127.0.0.1");
      await once(web, "listening");
      const address = web.address();
      origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    });

    afterAll(async () => {
      web.closeAllConnections();
      web.close();
    });

    test("a redirect to another path of the same host is followed [source.git.redirect]", async () => {
      const moved = { url: `${origin}/old.git` };
      expect(await remote.listRefs(moved, ["HEAD"])).toMatchObject([{ oid: second }]);
      expect(await remote.fetchTree(moved, { oid: first, paths: ["base"] })).toMatchObject({
        files: [{ path: "base/base.yaml" }],
      });
    });

    test("a server with only the old protocol gives the same references and files [source.git.protocols]", async () => {
      const old = { url: `${origin}/v0/fleet.git` };
      expect(await remote.listRefs(old, ["refs/heads/main"])).toMatchObject([{ oid: second }, {}]);
      const desired = { oid: second, paths: ["."] };
      const [today, then] = [
        await remote.fetchTree(repository("fleet"), desired),
        await remote.fetchTree(old, desired),
      ];
      expect(then).toEqual(today);
      await expect(remote.fetchTree(old, { oid: "1".repeat(40), paths: ["."] })).rejects.toMatchObject({
        code: "GitRefNotFound",
        message: expect.stringContaining("not our ref"),
      });
    });

    const rows: readonly (readonly [path: string, retry: string, message: string])[] = [
      ["/page", "permanent", "does not answer like a git server"],
      ["/renamed", "permanent", "does not answer like a git server"],
      ["/elsewhere", "transient", "redirects to http://127.0.0.2"],
      ["/circle", "transient", "redirects in a cycle"],
      ["/broken", "transient", "503"],
      ["/silent", "transient", "did not answer within 1 s"],
    ];
    test.each(rows)("%s is a %s failure", async (path, retry, message) => {
      const impatient = limited({ timeoutSeconds: 1 });
      await expect(impatient.listRefs({ url: origin + path }, ["HEAD"])).rejects.toMatchObject({
        code: "GitOperationFailed",
        retry,
        message: expect.stringContaining(message),
      });
    });
  });

  test("an address without a server is a transient failure", async () => {
    await expect(remote.listRefs({ url: "https://127.0.0.1:1/x" }, ["HEAD"])).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
    });
  });
});
