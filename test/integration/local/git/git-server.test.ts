import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import git from "isomorphic-git";
import http from "isomorphic-git/http/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import type { Cut } from "#local/git/cut-answer.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { sendGithubPush } from "#local/git/github-push.ts";
import { type RefUpdate, zeroId } from "#local/git/repository.ts";

let folder: string;
let server: GitServer;
const pushes: [string, readonly RefUpdate[]][] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-git-"));
  server = await startGitServer({
    root: join(folder, "repositories"),
    onPush: (repository, updates) => void pushes.push([repository, updates]),
  });
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

async function runGit(...args: string[]): Promise<string> {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
  return (await promisify(execFile)("git", [...identity, ...args], { cwd: folder })).stdout;
}

test("git can clone and push, and the push is reported with the changed refs", async () => {
  const first = await server.createRepository("platform/fleet", {
    "apps/web.yaml": "kind: ConfigMap\n",
    "bin/run.sh": { executable: "#!/bin/sh\n" },
    latest: { symlink: "apps" },
    'odd "näme"': new Uint8Array([0, 255, 10]),
  });
  const work = join(folder, "work");
  await runGit("clone", "--quiet", server.url("platform/fleet"), work);
  expect(await readFile(join(work, "apps/web.yaml"), "utf8")).toBe("kind: ConfigMap\n");
  expect(await readlink(join(work, "latest"))).toBe("apps");
  expect([...(await readFile(join(work, 'odd "näme"')))]).toEqual([0, 255, 10]);
  expect(await runGit("-C", work, "ls-files", "--stage", "bin")).toMatch(/^100755 /);

  await writeFile(join(work, "apps/web.yaml"), "kind: Secret\n");
  await runGit("-C", work, "commit", "--quiet", "--all", "--message", "change");
  await runGit("-C", work, "tag", "v1.0.0");
  await runGit("-C", work, "push", "--quiet", "origin", "main", "v1.0.0");
  const second = (await runGit("-C", work, "rev-parse", "HEAD")).trim();
  await expect.poll(() => pushes.length, { timeout: 5000 }).toBe(2);
  expect(pushes).toEqual([
    ["platform/fleet", [{ ref: "refs/heads/main", before: zeroId, after: first }]],
    [
      "platform/fleet",
      [
        { ref: "refs/heads/main", before: first, after: second },
        { ref: "refs/tags/v1.0.0", before: zeroId, after: second },
      ],
    ],
  ]);
});

test("isomorphic-git lists branches, tags and peeled tags over protocol 2", async () => {
  const first = await server.createRepository("refs", { a: "1" });
  const second = await server.commitFiles("refs", { a: "2" }, { message: "two", tag: "light" });
  const third = await server.commitFiles(
    "refs",
    { a: null, b: "3" },
    { message: "three", branch: "feature", onto: "main", tag: { name: "heavy", message: "Heavy" } },
  );
  const refs = await git.listServerRefs({
    http,
    url: server.url("refs"),
    protocolVersion: 2,
    symrefs: true,
    peelTags: true,
  });
  const byName = Object.fromEntries(refs.map(({ ref, ...rest }) => [ref, rest]));
  expect(byName).toEqual({
    HEAD: { oid: second, target: "refs/heads/main" },
    "refs/heads/feature": { oid: third },
    "refs/heads/main": { oid: second },
    "refs/tags/heavy": { oid: expect.stringMatching(/^[0-9a-f]{40}$/), peeled: third },
    "refs/tags/light": { oid: second },
  });
  expect(byName["refs/tags/heavy"]?.oid).not.toBe(third);
  expect((await runGit("-C", join(folder, "repositories/refs.git"), "ls-tree", "--name-only", third)).trim()).toBe("b");
  expect((await runGit("-C", join(folder, "repositories/refs.git"), "rev-parse", `${second}^`)).trim()).toBe(first);
});

test("a history can be rewritten and a ref deleted", async () => {
  const first = await server.createRepository("rewritten", { a: "1" });
  pushes.length = 0;
  const second = await server.commitFiles("rewritten", { b: "2" }, { message: "anew", onto: null });
  await server.deleteRef("rewritten", "refs/heads/main");
  expect(pushes.map(([, updates]) => updates)).toEqual([
    [{ ref: "refs/heads/main", before: first, after: second }],
    [{ ref: "refs/heads/main", before: second, after: zeroId }],
  ]);
});

test("a server with credentials asks for them", async () => {
  const closed = await startGitServer({
    root: join(folder, "closed"),
    credentials: { username: "starling", password: "s3cret" },
  });
  try {
    await closed.createRepository("private", { a: "1" });
    const url = closed.url("private");
    const list = (password: string) =>
      git.listServerRefs({
        http,
        url,
        onAuth: () => ({ username: "starling", password }),
        onAuthFailure: () => ({ cancel: true }),
      });
    expect((await list("s3cret")).map(({ ref }) => ref)).toContain("refs/heads/main");
    await expect(list("wrong")).rejects.toThrow();
    expect((await fetch(`${url}/info/refs?service=git-upload-pack`)).status).toBe(401);
  } finally {
    await closed.stop();
  }
});

test("https is served with a certificate that git verifies", async () => {
  const tls = await createTlsCertificate();
  const secure = await startGitServer({ root: join(folder, "secure"), tls });
  try {
    await secure.createRepository("fleet", { a: "1" });
    const ca = join(folder, "ca.pem");
    await writeFile(ca, tls.cert);
    const trusting = await promisify(execFile)("env", [
      `GIT_SSL_CAINFO=${ca}`,
      "git",
      "ls-remote",
      secure.url("fleet"),
    ]);
    expect(trusting.stdout).toContain("refs/heads/main");
    await expect(runGit("ls-remote", secure.url("fleet"))).rejects.toThrow("certificate");
  } finally {
    await secure.stop();
  }
});

test.each(["../outside", "/etc", "a/../b", "a.git", "", "a b"])("the repository name %j is refused", async (name) => {
  await expect(server.createRepository(name)).rejects.toThrow("Repository name");
});

test("an answer that is set to fail is cut off, refused, or never sent", async () => {
  let cut: Cut | undefined;
  const failing = await startGitServer({ root: join(folder, "failing"), disturb: () => cut });
  try {
    await failing.createRepository("app", { "a.yaml": "kind: Secret\n" });
    const ask = () => fetch(`${failing.url("app")}/info/refs?service=git-upload-pack`);
    cut = { when: "before", as: "serverError" };
    expect((await ask()).status).toBe(503);
    cut = { when: "before", as: "reset" };
    await expect(ask()).rejects.toThrow("fetch failed");
    cut = { when: "after", as: "reset" };
    const answer = await ask();
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow("terminated");
    cut = undefined;
    expect(await (await ask()).text()).toContain("refs/heads/main");
  } finally {
    await failing.stop();
  }
});

test("nothing outside the root is served", async () => {
  const { hostname, port } = new URL(server.url("refs"));
  const answer = await fetch(`http://${hostname}:${port}/%2e%2e/%2e%2e/etc/passwd`);
  expect(answer.status).toBe(404);
  expect((await fetch(`${server.url("absent")}/info/refs?service=git-upload-pack`)).status).toBe(404);
});

test("the webhook of a GitHub push has a signature of its bytes", async () => {
  let seen: { headers: IncomingHttpHeaders; body: string } | undefined;
  const receiver = createServer(async (request, response) => {
    seen = { headers: request.headers, body: await text(request) };
    response.writeHead(202).end();
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const address = receiver.address();
  const port = typeof address === "object" ? address?.port : 0;
  const status = await sendGithubPush({
    webhookUrl: `http://127.0.0.1:${port}/hook/github/1`,
    secret: "s3cret",
    repository: "platform/fleet",
    cloneUrl: "http://127.0.0.1:1/platform/fleet.git",
    update: { ref: "refs/heads/main", before: zeroId, after: "a".repeat(40) },
  });
  receiver.close();
  expect(status).toBe(202);
  const digest = createHmac("sha256", "s3cret")
    .update(seen?.body ?? "")
    .digest("hex");
  expect(seen?.headers["x-hub-signature-256"]).toBe(`sha256=${digest}`);
  expect(seen?.headers["x-github-event"]).toBe("push");
  expect(JSON.parse(seen?.body ?? "")).toMatchObject({
    ref: "refs/heads/main",
    after: "a".repeat(40),
    created: true,
    deleted: false,
    repository: { clone_url: "http://127.0.0.1:1/platform/fleet.git", full_name: "platform/fleet" },
  });
});
