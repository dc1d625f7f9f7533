import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { documentChange } from "#functions/api/write/object-change.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { GitRemote } from "#shared/ports.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import {
  canSign,
  type SignedRepository,
  type Signer,
  signedRepository,
  sshSigner,
} from "#test/support/signed-repository.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
const server = forAllTests(startOwnGitServer);
let table: MemoryTable;
let worlds: Map<string, SourceWorld>;
let number = 0;

beforeEach(() => {
  number += 1;
  table = new MemoryTable();
  worlds = new Map();
});

const repositoryOf = (name: string) => `${name}-${number}`;

/** Writes the Source as the API does. */
async function apply(name: string, { git = {}, ...spec }: { readonly git?: object; readonly include?: object[] }) {
  const parsed = parseDocument({
    apiVersion: "starling.dev/v1alpha1",
    kind: "Source",
    metadata: { namespace: "shop", name },
    spec: { git: { url: server.url(repositoryOf(name)), ref: { branch: "main" }, ...git }, ...spec },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const before = await table.get(keys.object("shop", "Source", name));
  const now = new Date("2026-03-01T10:00:00.000Z");
  await table.write(documentChange(before, parsed.document, { now, uid: name }).writes);
}

function worldOf(name: string): SourceWorld {
  const known = worlds.get(name);
  if (known !== undefined) return known;
  const [first] = worlds.values();
  const blobs = first === undefined ? {} : { blobs: first.blobs };
  const world = new SourceWorld(table, { source: { namespace: "shop", name }, ...blobs });
  world.git = remote;
  worlds.set(name, world);
  return world;
}

async function artifactOf(name: string) {
  const { status } = await worldOf(name).row();
  return status.artifact;
}

describe.skipIf(!canSign("ssh-keygen"))("an included Source that verifies (with ssh-keygen)", () => {
  let bot: Signer;
  let other: Signer;
  let base: SignedRepository;
  beforeAll(() => {
    bot = sshSigner("ed25519");
    other = sshSigner("ed25519");
  });
  const verifiedBy = ({ publicKey }: Signer) => ({ git: { verify: { mode: "HEAD", keys: [publicKey] } } });

  /** `app` includes `middle`, and `middle` includes `base`, which verifies. */
  beforeEach(async () => {
    base = signedRepository(server.root, repositoryOf("base"));
    base.commit("a: 1", bot);
    await server.createRepository(repositoryOf("middle"), { "m.yaml": "m: 1" });
    await server.createRepository(repositoryOf("app"), { "app.yaml": "app: 1" });
    await apply("base", verifiedBy(bot));
    await apply("middle", { include: [{ source: "base" }] });
    await apply("app", { include: [{ source: "middle" }] });
    for (const name of ["base", "middle", "app"]) await worldOf(name).resolve();
    expect((await artifactOf("app"))?.files).toBe(3);
  });

  /** The files of `app` do not change, although its own repository has another commit. */
  async function expectKept(message: string): Promise<void> {
    const before = await artifactOf("app");
    await server.commitFiles(repositoryOf("app"), { "app.yaml": "app: 2" }, { message: "second" });
    const ready = await worldOf("app").ready();
    expect(ready).toMatchObject({ status: "False", reason: "IncludeUnavailable" });
    expect(ready?.message).toContain(message);
    expect(await artifactOf("app")).toEqual(before);
  }

  test("files whose key is removed come into no new artifact, also through a Source in between [source.include.key-removed]", async () => {
    await apply("base", verifiedBy(other));
    await worldOf("base").resolve();
    await expectKept(
      "spec.include[0].source: Source middle includes Source base, which is not verified (SignatureKeyUnknown)",
    );
    await apply("base", verifiedBy(bot));
    await worldOf("base").resolve();
    expect(await worldOf("app").ready()).toMatchObject({ status: "True" });
    expect((await worldOf("app").files()).map(({ path }) => path)).toContain("middle/base/a.yaml");
  });

  test("files whose key is removed come into no new artifact while their repository is away [source.include.key-removed]", async () => {
    await apply("app", { include: [{ source: "base" }] });
    await worldOf("app").resolve();
    await apply("base", verifiedBy(other));
    const away: GitRemote = {
      listRefs: () => Promise.reject(new Error("away")),
      fetchTree: () => Promise.reject(new Error("away")),
    };
    worldOf("base").git = away;
    await worldOf("base").resolve();
    await expectKept("Source base is not verified by the keys of its present spec yet");
  });
});
