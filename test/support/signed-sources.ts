/** A Source that verifies, in front of a git server with a repository of its own for each test. */
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type SignedRepository, signedRepository } from "#test/support/signed-repository.ts";
import { SourceWorld } from "#test/support/source-world.ts";

export interface SignedSources {
  readonly world: SourceWorld;
  readonly made: SignedRepository;
  /** The fetches, as `<oid> <paths>`. */
  readonly fetched: readonly string[];
  readonly url: string;
  specOf(mode: string, keys: readonly string[], ref?: object): object;
}

export function conditionsOf({ status }: Pick<SourceRow, "status">) {
  return Object.fromEntries(
    status.conditions.map(({ type, status: state, reason, message }) => [type, { status: state, reason, message }]),
  );
}

/** To be called once in a file of tests. */
export function signedSources(): SignedSources {
  let server: OwnGitServer;
  let number = 0;
  const sources = { world: new SourceWorld() } as { -readonly [Name in keyof SignedSources]: SignedSources[Name] };
  sources.specOf = (mode, keys, ref = { branch: "main" }) => ({
    git: { url: sources.url, ref, verify: { mode, keys } },
  });
  beforeAll(async () => {
    server = await startOwnGitServer();
  });
  afterAll(async () => {
    await server?.stop();
  });
  beforeEach(() => {
    number += 1;
    const name = `signed-${number}`;
    const fetched: string[] = [];
    const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    sources.url = server.url(name);
    sources.made = signedRepository(server.root, name);
    sources.fetched = fetched;
    sources.world = new SourceWorld();
    sources.world.git = {
      listRefs: (repository, prefixes) => remote.listRefs(repository, prefixes),
      fetchTree(repository, commit) {
        fetched.push(`${commit.oid} ${commit.paths}`);
        return remote.fetchTree(repository, commit);
      },
    };
  });
  return sources;
}

/** Resolves, and expects a refusal that stores nothing and fetches no files. */
export async function expectRefused(
  { world, fetched }: Pick<SignedSources, "world" | "fetched">,
  reason: string,
  message: string,
): Promise<void> {
  const withFiles = () => fetched.filter((each) => !each.endsWith(" ")).length;
  const [before, files] = [[...world.blobs.keys()], withFiles()];
  const kept = (await world.resolve()).status.artifact;
  const row = await world.resolve();
  const refused = { status: "False", reason, message: expect.stringContaining(message) };
  expect(conditionsOf(row)).toMatchObject({ Ready: refused, SourceVerified: refused });
  expect(row.status.artifact).toEqual(kept);
  expect([...world.blobs.keys()]).toEqual(before);
  expect(withFiles()).toBe(files);
}
