/**
 * Commands that show a group at another revision of its Source, with the real API and a git server that asks for
 * credentials.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";
import { assignFleet, storeRendering } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixture, type Terminal } from "#test/integration/cli/cli-fixture.ts";

const login = { username: "ana", password: "correct horse" };
const [, , group = ""] = fleet.split("---\n");

let cli: CliFixture;
let git: GitServer;
let root: string;
/** A terminal whose environment gives git the credentials. */
let known: Terminal;
let stranger: Terminal;
let commits: { readonly main: string; readonly feature: string };

function settings(size: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace: "shop" },
    data: { size },
  });
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "starling-revisions-"));
  const tls = await createTlsCertificate();
  git = await startGitServer({ root, tls, credentials: login });
  await git.createRepository("app");
  const at = new Date(Date.UTC(2026, 0, 1));
  const main = await git.commitFiles(
    "app",
    { "deploy/all.yaml": settings("1"), "other.yaml": "a: b\n" },
    { message: "1", at },
  );
  await git.commitFiles("app", { "deploy/all.yaml": settings("2") }, { message: "2", at });
  const feature = await git.commitFiles(
    "app",
    { "deploy/all.yaml": settings("3") },
    { message: "3", at, branch: "feature/x" },
  );
  commits = { main, feature };
  // The repository has a branch and a tag with the same name, and a tag for the first commit.
  const bare = (...words: readonly string[]) => execFileSync("git", ["-C", join(root, "app.git"), ...words]);
  bare("tag", "v1", main);
  bare("tag", "both", main);
  bare("branch", "both", feature);
  cli = await startCliFixture();
  cli.write("ca.pem", tls.cert);
  const helper = `!f() { echo username=${login.username}; echo 'password=${login.password}'; }; f`;
  const asked = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "credential.helper", GIT_CONFIG_VALUE_0: helper };
  stranger = { env: { GIT_SSL_CAINFO: join(cli.folder, "ca.pem"), GIT_CONFIG_NOSYSTEM: "1" } };
  known = { env: { ...stranger.env, ...asked } };
  cli.write(
    "group.yaml",
    `apiVersion: starling.dev/v1alpha1
kind: Source
metadata: {name: app}
spec: {git: {url: "${git.url("app")}", ref: {branch: main}}, paths: [deploy]}
---
${group.replace("source: app", "source: app, path: deploy")}`,
  );
  expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0 });
  const object = JSON.parse(settings("1"));
  await assignFleet(cli, [{ name: "c1", assigned: await storeRendering(cli, [object]) }]);
});

afterAll(async () => {
  await cli.stop();
  await git.stop();
  rmSync(root, { recursive: true, force: true });
});

const sizes = async (line: string, terminal: Terminal) => {
  const ran = await cli.run(`${line} --show-secrets`, terminal);
  return { code: ran.code, size: /size: '(\d)'/.exec(ran.out)?.[1], at: /, (\S+)$/m.exec(ran.out)?.[1], err: ran.err };
};

describe("a revision that is not the newest", () => {
  test.each([
    ["a branch", "feature/x", "3", () => `feature/x@sha1:${commits.feature}`],
    ["a tag", "v1", "1", () => `v1@sha1:${commits.main}`],
    ["a reference by its whole name", "refs/heads/feature/x", "3", () => `feature/x@sha1:${commits.feature}`],
    ["a name with its Source", "app=feature/x", "3", () => `feature/x@sha1:${commits.feature}`],
  ])("a revision can be given as %s", async (_what, revision, size, at) => {
    const found = await sizes(`render shop --revision ${revision}`, known);
    expect(found).toEqual({ code: 0, size, at: at(), err: "" });
  });

  test("a revision can be a commit, also in the form in which a revision is printed", async () => {
    const at = `sha1:${commits.main}`;
    expect(await sizes(`render shop --revision ${commits.main}`, known)).toMatchObject({ size: "1", at });
    expect(await sizes(`render shop --revision main@${at}`, known)).toMatchObject({ size: "1", at: `main@${at}` });
  });

  test("a plan and a diff of the revision have their exit codes, and nothing is written", async () => {
    const writes = cli.log.length;
    const planned = await cli.run("plan shop --revision feature/x", known);
    expect(planned).toMatchObject({ code: 1, err: "" });
    expect(planned.out).toContain('data.size  "1" -> "3"');
    expect(planned.out).toContain(`(feature/x@sha1:${commits.feature}, compared with the assigned renderings`);
    expect(await cli.run("plan shop --revision v1", known)).toMatchObject({ code: 0 });
    const equal = { code: 0, out: "", err: "no differences\n" };
    expect(await cli.run("diff shop --revision v1", known)).toEqual(equal);
    expect((await cli.run("diff shop --revision feature/x", known)).out).toContain("+  size: '3'");
    expect(cli.log.slice(writes).map(({ message }) => message)).not.toContain("applied");
  });

  test.each([
    ["nowhere", "the repository has no refs/heads/nowhere and no refs/tags/nowhere", 2],
    ["both", "refs/heads/both and refs/tags/both are different commits; give the full name", 2],
    ["v1 --revision other=v1", "--revision names Source other, which is not used here; used Sources: app", 2],
    ["0".repeat(40), "cannot be fetched from here", 3],
    ["0123456", "a commit needs all of its 40 digits", 2],
  ])("the revision %s is refused by name", async (revision, message, code) => {
    const ran = await cli.run(`render shop --revision ${revision}`, known);
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toContain(message);
  });

  test("a revision that git refuses is reported with what to do, and no password is printed", async () => {
    const ran = await cli.run("render shop --revision feature/x", stranger);
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("refuses your credentials, or your git has none for it");
    expect(ran.err).toContain("git worktree add ../at feature/x");
    expect(ran.err).not.toContain(login.password);
  });

  test("a repository with a certificate of an authority that nobody named here is reported with GIT_SSL_CAINFO", async () => {
    const ran = await cli.run("render shop --revision feature/x", { env: { GIT_CONFIG_NOSYSTEM: "1" } });
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("an authority that is not trusted here; name its file in GIT_SSL_CAINFO\n");
  });

  test("a revision in the commands of a remedy is one word of a shell", async () => {
    const revision = "x;$(id)";
    const missing = await cli.run(`render shop --revision ${revision}`, known);
    expect(missing).toMatchObject({ code: 2 });
    const refused = await cli.run(`render shop --revision ${revision}`, stranger);
    expect(refused.err).toContain(`git worktree add ../at '${revision}'`);
    const unclear = await cli.run(`plan shop bank --revision ${revision}`, known);
    expect(unclear.err).toContain(`--revision NAME='${revision}'`);
  });

  test("a stored revision of the Source is used when git refuses", async () => {
    const file = { path: "deploy/all.yaml", executable: false, content: Buffer.from(settings("7")) };
    const files = [file, { ...file, path: "other.yaml" }];
    const digest = treeDigest(files);
    await cli.blobs.overwrite(blobKeys.artifact(digest), await packArtifact(files));
    const commit = "7".repeat(40);
    const about = { subject: "s", author: "a", committedAt: "2026-11-20T07:40:00.000Z" };
    const size = { sizeBytes: 1, files: 2, storedAt: "2026-11-20T07:44:00.000Z" };
    const artifact = { revision: `main@sha1:${commit}`, digest, ...about, ...size };
    await cli.table.write([
      { put: revisionRow({ namespace: "payments", name: "app" }, artifact, "2026-11-20T07:44:00.000Z") },
    ]);
    for (const revision of [commit, commit.slice(0, 7), `main@sha1:${commit}`]) {
      const found = await sizes(`render shop --revision ${revision}`, stranger);
      expect(found).toMatchObject({ code: 0, size: "7", at: artifact.revision });
      expect(found.err).toContain(`is read from the installation, because revision ${revision} of Source app cannot`);
    }
  });

  test("a revision and a folder of the same Source are refused together", async () => {
    expect(await cli.run("render shop --source app=. --revision app=v1", known)).toMatchObject({ code: 2 });
  });

  test("a revision of a Source over SSH is read if it is stored, and is refused with a folder as the remedy otherwise", async () => {
    const credentials = "{secret: starling/git/app, kind: ssh}";
    const former = readFileSync(join(cli.folder, "group.yaml"), "utf8");
    cli.write(
      "group.yaml",
      former.replace(/url: "[^"]*"/, `url: "ssh://git@git.corp.example/app.git", credentials: ${credentials}`),
    );
    expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0 });
    expect(await sizes(`render shop --revision ${"7".repeat(40)}`, stranger)).toMatchObject({ code: 0, size: "7" });
    const ran = await cli.run("plan shop --revision feature/x", known);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("only revisions of git over HTTPS are fetched from here (this one has an SSH address)");
    expect(ran.err).toContain("--source app=FOLDER");
  });
});
