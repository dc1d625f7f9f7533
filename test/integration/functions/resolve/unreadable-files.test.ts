/** A Source that cannot read a revision completely keeps its earlier artifact, so that nothing is deleted. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { resolveSource } from "#functions/resolve/resolve.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noBuckets } from "#test/support/no-buckets.ts";
import { noHttp } from "#test/support/no-http.ts";
import { noRole } from "#test/support/no-role.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type RawEntry, rawRepository } from "#test/support/raw-repository.ts";

const now = new Date("2026-03-01T10:00:00.000Z");
const key = keys.object("shop", "Source", "fleet");
let server: OwnGitServer;

beforeAll(async () => {
  server = await startOwnGitServer();
});

afterAll(async () => {
  await server?.stop();
});

test("a file that becomes a link changes nothing, and a file that cannot be read keeps the earlier artifact [source.files.unreadable]", async () => {
  await server.createRepository("fleet");
  const made = rawRepository(server.root, "fleet");
  const claim = await made.blob("kind: PersistentVolumeClaim\n");
  const commit = async (b: RawEntry) => {
    const shared = await made.tree([{ mode: "100644", name: "b.yaml", oid: claim }]);
    return made.commit(
      await made.tree([
        { mode: "40000", name: "app", oid: await made.tree([b]) },
        { mode: "40000", name: "shared", oid: shared },
      ]),
    );
  };
  const table = new MemoryTable();
  const row: SourceRow = {
    ...key,
    namespace: "shop",
    name: "fleet",
    type: "Source",
    schema: rowSchema,
    version: 1,
    uid: "u1",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: now.toISOString(),
    spec: sourceSpec.parse({ git: { url: server.url("fleet"), ref: { branch: "main" } }, paths: ["app"] }),
    operations: {},
    status: { conditions: [] },
  };
  await table.write([{ put: row }]);
  const ports = {
    table,
    blobs: new MemoryBlobStore(() => now),
    sender: new MemorySender(),
    git: new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") }),
    http: noHttp,
    ...noBuckets,
    secrets: { read: async () => "" },
    role: noRole,
    events: undefined,
    clock: { now: () => now },
    ids: randomIds,
    log: { info: () => {}, warn: () => {}, error: () => {} },
  };
  const resolve = async () => {
    const source = { namespace: "shop", name: "fleet" };
    await resolveSource({ to: "resolve", source }, ports, { getRemainingTimeInMillis: () => 180_000 });
    const { status } = (await table.get(key)) as SourceRow;
    const ready = status.conditions.find(({ type }) => type === "Ready");
    return { artifact: status.artifact, ready };
  };

  await commit({ mode: "100644", name: "b.yaml", oid: claim });
  const before = await resolve();
  expect(before).toMatchObject({ ready: { status: "True" }, artifact: { files: 1 } });

  const link = await commit({ mode: "120000", name: "b.yaml", oid: await made.blob("../shared/b.yaml") });
  const linked = await resolve();
  expect(linked).toMatchObject({
    ready: { status: "True" },
    artifact: { revision: `main@sha1:${link}`, digest: before.artifact?.digest },
  });

  for (const [entry, message] of [
    [{ mode: "160000", name: "sub", oid: claim }, /^the path "app\/sub" of the repository is a submodule/],
    [{ mode: "120000", name: "b.yaml", oid: claim }, /^the path "app\/b.yaml" of the repository is a link to "kind/],
  ] as const) {
    await commit(entry);
    const refused = { status: "False", reason: "GitPathRefused", message: expect.stringMatching(message) };
    expect(await resolve()).toMatchObject({ ready: refused, artifact: linked.artifact });
  }
});
