/** `starling source verify`, over rows that the real function Resolve wrote after it read a real git server. */
import { createHash } from "node:crypto";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { packedChart } from "#test/support/packed-chart.ts";
import { clearSign, pgpKey } from "#test/support/pgp-keys.ts";
import { canSign, type Signer, sshSigner } from "#test/support/signed-repository.ts";
import { signedSources } from "#test/support/signed-sources.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const hasKeygen = canSign("ssh-keygen");
const at = signedSources();
let cli: CliFixture;
let world: SourceWorld;
let bot: Signer;
let stranger: Signer;

beforeAll(() => {
  if (!hasKeygen) return;
  bot = sshSigner("ed25519");
  stranger = sshSigner("ed25519");
});
beforeEach(async () => {
  cli = await startCliFixture();
  world = new SourceWorld(cli.table);
  world.git = at.world.git;
});
afterEach(() => cli.stop());

const specOf = (mode: string, keys: readonly Signer[], ref?: object) =>
  at.specOf(
    mode,
    keys.map(({ publicKey }) => publicKey),
    ref,
  );

function fingerprintOf({ publicKey }: Signer): string {
  const key = parseSshKey(publicKey);
  return typeof key === "string" ? key : key.fingerprint;
}

async function verifyApp(more = "") {
  const words = `source verify app -n shop ${more}`.trim();
  const { code, out, err } = await cli.run(words);
  const json = await cli.run(`${words} -o json`);
  expect(json.code).toBe(code);
  return { code, out, err, json: json.out === "" ? undefined : (JSON.parse(json.out) as Record<string, unknown>) };
}

describe.skipIf(!hasKeygen)("starling source verify (with ssh-keygen)", () => {
  test("the present revision is named with its commit, its key and whose it is", async () => {
    const oid = at.made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    const { code, out, err, json } = await verifyApp();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`shop/app   main@sha1:${oid.slice(0, 7)}   verified   (mode HEAD)\n`);
    expect(out).toContain(`  commit ${oid}   key ${fingerprintOf(bot)}   bot@acme.io\nby Starling, `);
    expect(json).toEqual({
      source: "app",
      namespace: "shop",
      by: "starling",
      revision: `main@sha1:${oid}`,
      verified: true,
      mode: "HEAD",
      at: world.now.toISOString(),
      signatures: [{ object: `commit ${oid}`, key: fingerprintOf(bot), owner: "bot@acme.io" }],
    });
  });

  test("a refused revision is named with its reason and with what stays in use, and exit code 1", async () => {
    const good = at.made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    const bad = at.made.commit("a: 2", stranger);
    await world.resolve();
    const { code, out, json } = await verifyApp();
    expect(code).toBe(1);
    expect(out).toContain("not verified   (SignatureKeyUnknown)");
    expect(out).toContain(`in use: main@sha1:${good.slice(0, 7)}`);
    expect(json).toMatchObject({
      verified: false,
      reason: "SignatureKeyUnknown",
      message: expect.stringContaining(fingerprintOf(stranger)),
      inUse: `main@sha1:${good}`,
    });
    // The stored verdicts of both, without a question to git.
    const before = at.fetched.length;
    expect(await verifyApp(`--commit ${good.slice(0, 7)}`)).toMatchObject({ code: 0, json: { by: "starling" } });
    expect(await verifyApp(`--commit ${bad}`)).toMatchObject({
      code: 1,
      json: { by: "starling", revision: `main@sha1:${bad}` },
    });
    expect(at.fetched).toHaveLength(before);
  });

  test("a former revision keeps the verdict of its time, after its key is removed [source.verify.command]", async () => {
    const old = at.made.commit("a: 1", stranger);
    await world.put(specOf("HEAD", [stranger]));
    await world.resolve();
    at.made.commit("a: 2", bot);
    await world.put(specOf("HEAD", [bot]));
    world.passDays(1);
    await world.resolve();
    expect(await verifyApp(`--commit ${old}`)).toMatchObject({
      code: 0,
      json: { at: "2026-03-01T10:00:00.000Z", signatures: [{ key: fingerprintOf(stranger) }] },
    });
  });

  test("a commit that Starling does not have is verified here, with the keys of the Source [source.verify.command]", async () => {
    at.made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    const proposed = async (signer?: Signer) => {
      const oid = at.made.commit(`a: ${signer?.key}`, signer);
      at.made.git("push", "-q", "--force", "origin-of-test", "main:refs/heads/proposal");
      return oid;
    };
    at.made.git("remote", "add", "origin-of-test", at.made.bare);
    expect(await verifyApp(`--commit ${await proposed(bot)}`)).toMatchObject({
      code: 0,
      json: { by: "here", verified: true },
    });
    const unsigned = await proposed();
    const { code, out, json } = await verifyApp(`--commit ${unsigned}`);
    expect(code).toBe(1);
    expect(json).toMatchObject({ by: "here", reason: "SignatureMissing", revision: `sha1:${unsigned}` });
    expect(out).toContain("by this command, with the present keys of the Source");
  });

  test("a tag that Starling does not have is verified here, and one that does not exist is named", async () => {
    at.made.commit("a: 1");
    at.made.tag("v1.0.0", bot);
    await world.put(specOf("Tag", [bot], { semver: "^1" }));
    await world.resolve();
    expect(await verifyApp("--tag v1.0.0")).toMatchObject({ code: 0, json: { by: "starling" } });
    at.made.tag("v2.0.0", bot);
    at.made.tag("v3.0.0", stranger);
    at.made.tag("v4.0.0", "lightweight");
    expect(await verifyApp("--tag v2.0.0")).toMatchObject({
      code: 0,
      json: { by: "here", mode: "Tag", signatures: [{ object: "tag v2.0.0", key: fingerprintOf(bot) }] },
    });
    expect(await verifyApp("--tag v3.0.0")).toMatchObject({
      code: 1,
      json: { by: "here", reason: "SignatureKeyUnknown" },
    });
    expect(await verifyApp("--tag v4.0.0")).toMatchObject({ code: 1, json: { by: "here", reason: "TagNotAnnotated" } });
    expect(await verifyApp("--tag v9.0.0")).toMatchObject({
      code: 2,
      err: expect.stringContaining("has no refs/tags/v9.0.0"),
    });
    const oid = at.made.git("rev-parse", "HEAD^{commit}");
    expect(await verifyApp(`--commit ${oid.replace(/^./, (digit) => (digit === "0" ? "1" : "0"))}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("a commit alone is not enough"),
    });
  });

  test("a Source that demands no signature, or was not polled since its change, is not verified", async () => {
    at.made.commit("a: 1", bot);
    const { git } = specOf("HEAD", [bot]) as { git: { verify?: object } };
    const { verify: _verify, ...open } = git;
    await world.put({ git: open });
    await world.resolve();
    expect(await verifyApp()).toMatchObject({ code: 1, json: { reason: "NotDemanded" } });
    await world.put({ git });
    expect(await verifyApp()).toMatchObject({ code: 1, json: { reason: "NotPolled" } });
  });

  test("a former revision keeps its verdict after the Source demands no signature any more", async () => {
    const commit = at.made.commit("a: 1", bot);
    const { git } = specOf("HEAD", [bot]) as { git: { verify?: object } };
    await world.put({ git });
    await world.resolve();
    const { verify: _verify, ...open } = git;
    await world.put({ git: open });
    expect(await verifyApp()).toMatchObject({ code: 1, json: { reason: "NotDemanded" } });
    expect(await verifyApp(`--commit ${commit}`)).toMatchObject({ code: 0, json: { verified: true } });
  });

  test.each([
    [
      { archive: { url: "https://files.acme.example/a.tgz", sha256: "a".repeat(64) } },
      "spec.archive.sha256 says which",
    ],
    [{ s3: { bucket: "acme-manifests" } }, "the policy of the bucket says who writes there"],
    [{ external: { principals: ["arn:aws:iam::111122223333:role/ci"] } }, "spec.external.principals says who may push"],
  ])("a Source of %j has nothing to verify, and the command says what it trusts instead", async (spec, why) => {
    await world.put(spec);
    const { code, out, json } = await verifyApp();
    expect({ code, json }).toMatchObject({ code: 1, json: { reason: "NotDemanded" } });
    expect(out).toMatch(/ (has|have) no verify: /);
    expect(out).toContain(why);
  });

  test("a version of a chart has the verdict of its time, and one without provenance the reason", async () => {
    const registry = await startRegistryServer();
    const key = await pgpKey();
    const publish = async (version: string, isSigned: boolean) => {
      const packed = await packedChart("web", version);
      const digest = createHash("sha256").update(packed).digest("hex");
      const text = `name: web\nversion: ${version}\n\n...\nfiles:\n  web-${version}.tgz: sha256:${digest}\n`;
      registry.pushChart("charts/web", version, packed, isSigned ? Buffer.from(await clearSign(text, key)) : undefined);
      world.now = new Date();
      await world.resolve();
    };
    const verify = { provenance: { keys: [key.publicKey] } };
    await world.put({ helm: { url: `oci://${registry.host}/charts`, chart: "web", verify } });
    await publish("1.0.0", true);
    await publish("1.0.1", false);
    const signatures = [{ object: "chart web 1.0.0", key: key.fingerprint, owner: "Ana <ana@acme.io>" }];
    const signed = { by: "starling", mode: "provenance", signatures };
    expect(await verifyApp("--chart-version 1.0.0")).toMatchObject({ code: 0, json: signed });
    const missing = { reason: "SignatureMissing", inUse: expect.stringMatching(/^1\.0\.0@/) };
    expect(await verifyApp("--chart-version 1.0.1")).toMatchObject({ code: 1, json: missing });
    expect(await verifyApp("--chart-version 1.0")).toMatchObject({
      code: 2,
      err: expect.stringContaining("never had"),
    });
    await registry.stop();
  });

  test("wrong words are refused with what to type", async () => {
    at.made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    const refused = async (more: string) => (await cli.run(`source verify app -n shop ${more}`)).err;
    expect(await refused("--commit main")).toContain("--commit main is no commit");
    expect(await refused("--chart-version 1.0.0")).toContain("has tags of git");
    expect(await refused("--tag a --commit 1234567")).toContain("are given both");
    expect(await refused(`--commit ${"0".repeat(39)}`)).toContain("a commit needs all of its 40 digits here");
    expect((await cli.run("source verify nothing -n shop")).code).not.toBe(0);
  });
});
