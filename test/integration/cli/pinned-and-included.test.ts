/** `describe source` lists the templates that stay at a revision, and `source verify` speaks of included Sources. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const document = (kind: string, name: string, spec: object) => ({
  apiVersion: "starling.dev/v1alpha1",
  kind,
  metadata: { name, namespace: "payments" },
  spec,
});
const source = (name: string, more: object = {}) =>
  document("Source", name, { git: { url: `https://git.example.com/${name}.git` }, ...more });
const template = (name: string, revision?: string) => ({
  name,
  source: "app",
  path: "deploy",
  ...(revision === undefined ? {} : { revision }),
});
const group = (name: string, ...templates: readonly object[]) =>
  document("SyncGroup", name, { clusters: { all: true }, templates });

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
});
afterEach(() => cli.stop());

const apply = (...documents: readonly object[]) =>
  cli.run("apply -f - -q --yes", { input: documents.map((one) => JSON.stringify(one)).join("\n---\n") });

const commit = (digit: string) => digit.repeat(40);
const artifactOf = (digit: string, more: Partial<Artifact> = {}): Artifact => ({
  revision: `main@sha1:${commit(digit)}`,
  digest: `sha256:${digit.repeat(64)}`,
  ...{ sizeBytes: 1, files: 1, storedAt: "2026-11-20T06:00:00.000Z" },
  ...{ subject: "One", author: "Ana" },
  ...more,
});

async function has(name: string, artifact: Artifact): Promise<void> {
  const row = await cli.table.get(keys.object("payments", "Source", name));
  if (row === undefined) throw new Error(`no Source ${name}`);
  const next: SourceRow = { ...row, version: row.version + 1, status: { ...row.status, artifact } };
  await cli.table.write([
    { put: next },
    { put: revisionRow({ namespace: "payments", name }, artifact, "2026-11-20T06:00:00.000Z") },
  ]);
}

test("`describe source` lists which template of which owner stays at which revision, and what was found of it", async () => {
  const sync = document("Sync", "tool", { cluster: "c1", source: "app", path: "deploy", revision: commit("c") });
  const done = await apply(
    source("app"),
    source("other"),
    group("web", template("front", commit("a")), template("back")),
    group("api", template("server", commit("b")), { ...template("rest", commit("d")), source: "other" }),
    sync,
  );
  expect(done).toMatchObject({ code: 0 });
  const [a, b] = await Promise.all(
    ["a", "b"].map((digit) => cli.table.get(keys.pin({ namespace: "payments", name: "app" }, commit(digit)))),
  );
  if (a === undefined || b === undefined) throw new Error("no pins");
  const failure = { code: "GitRefNotFound", message: "git.example.com has no such commit", failures: 1 } as const;
  const found: readonly PinRow[] = [
    { ...a, artifact: artifactOf("a") },
    { ...b, failure },
  ];
  await cli.table.write(found.map((put) => ({ put })));
  const { out } = await cli.run("describe source/app");
  const [, section = ""] = /^Pinned revisions:\n((?: {2}.*\n)+)/m.exec(out) ?? [];
  expect(section.trimEnd().split("\n")).toEqual([
    `  ${commit("c")}   sync/tool`,
    `  ${commit("b")}   template server of syncgroup/api   GitRefNotFound: git.example.com has no such commit`,
    `  ${commit("a")}   template front of syncgroup/web   main@sha1:aaaaaaa   sha256:aaaaaaaaaaaa`,
  ]);
  expect(out).not.toContain("back");
  // Only this question reads the owners.
  const { status } = JSON.parse((await cli.run("get source app -o json")).out);
  expect(status).not.toHaveProperty("pins");
});

test("a Source at which no template stays has no such section", async () => {
  await apply(source("app"), group("web", template("front")));
  expect((await cli.run("describe source/app")).out).not.toContain("Pinned");
});

test("`source verify` says of each included Source whether its revision was verified", async () => {
  await apply(
    source("app", { include: [{ source: "signed" }, { source: "plain", toPath: "vendor" }, { source: "gone" }] }),
    source("signed"),
    source("plain"),
    source("gone"),
  );
  const at = "2026-11-20T06:00:00.000Z";
  const verified = { mode: "HEAD", signatures: [{ object: "commit 1", key: "SHA256:abc", owner: "bot@acme.io" }], at };
  const parts = { signed: artifactOf("a", { verified }), plain: artifactOf("b"), gone: artifactOf("c") };
  await has("signed", parts.signed);
  await has("plain", parts.plain);
  const included = Object.entries(parts).map(([name, { revision, digest }]) => ({
    source: name,
    fromPath: ".",
    ...(name === "plain" ? { toPath: "vendor" } : {}),
    revision,
    digest,
  }));
  await has("app", artifactOf("d", { included }));
  const { code, out } = await cli.run("source verify app");
  expect(code).toBe(1);
  expect(out).toContain("payments/app   not verified   (NotDemanded)");
  expect(out).toMatch(
    /\nincludes:\n {2}signed in signed {3}main@sha1:aaaaaaa {3}sha256:aaaaaaaaaaaa {3}verified {3}\(mode HEAD\) {3}key SHA256:abc bot@acme.io\n {2}plain in vendor {3}main@sha1:bbbbbbb {3}sha256:bbbbbbbbbbbb {3}not verified {3}\(NotDemanded\)\n {2}gone in gone {3}main@sha1:ccccccc {3}sha256:cccccccccccc {3}not verified {3}\(NotFound\)\n$/,
  );
  const json = JSON.parse((await cli.run("source verify app -o json")).out);
  expect(json.included).toEqual([
    { ...included[0], toPath: "signed", verified: true, ...verified },
    { ...included[1], verified: false, reason: "NotDemanded" },
    { ...included[2], toPath: "gone", verified: false, reason: "NotFound" },
  ]);
  expect(JSON.parse((await cli.run("source verify plain -o json")).out)).not.toHaveProperty("included");
});
