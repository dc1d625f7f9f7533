/** The Helm of the Lambda layer pushes to the local registry and pulls from it, and a Source reads what it pushed. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type RegistryServer,
  type RegistryServerOptions,
  startRegistryServer,
} from "#local/registry/registry-server.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { shopChart } from "#test/support/chart-fixture.ts";
import { canSign, gpgSigner } from "#test/support/signed-repository.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const run = promisify(execFile);
const login = { username: "bot", password: "s3cret" };
let folder: string;
let registry: RegistryServer;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "starling-helm-push-"));
});
afterEach(async () => {
  await registry.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function helm(...args: readonly string[]): Promise<string> {
  const homes = { HOME: folder, HELM_CONFIG_HOME: folder, HELM_CACHE_HOME: folder, HELM_DATA_HOME: folder };
  const { stdout, stderr } = await run(await locateHelm(""), args, { cwd: folder, env: homes });
  return `${stdout}${stderr}`;
}

/** Packs the chart at this version, with more arguments for `helm package`. @returns the name of the file. */
async function packed(version: string, ...more: readonly string[]): Promise<string> {
  for (const [path, text] of Object.entries(shopChart)) {
    const file = join(folder, "shop", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  await helm("package", "shop", "--version", version, ...more);
  return `shop-${version}.tgz`;
}

test.each<[string, RegistryServerOptions]>([
  ["to everybody", {}],
  ["by a password", { login: { ...login, scheme: "basic" } }],
  ["by a token", { login: { ...login, scheme: "bearer" } }],
])("a registry that is open %s gives a Source the chart that helm pushed", async (_, options) => {
  registry = await startRegistryServer(options);
  const { host } = registry;
  if (options.login !== undefined)
    await helm("registry", "login", host, "-u", login.username, "-p", login.password, "--plain-http");
  const version = "1.4.0+build.7";
  const file = await packed(version);
  const pushed = await helm("push", file, `oci://${host}/acme/charts`, "--plain-http");
  const [digest] = /sha256:[0-9a-f]{64}/.exec(pushed) ?? [];

  const world = new SourceWorld();
  const secret = "starling/registry";
  world.secrets.set(secret, JSON.stringify({ host, ...login }));
  const credentials = options.login === undefined ? {} : { credentials: { secret, kind: "basic" } };
  await world.put({
    helm: { url: `oci://${host}/acme/charts`, chart: "shop", ref: { semver: "^1.4" }, ...credentials },
  });
  expect(await world.ready()).toMatchObject({ status: "True" });
  const { artifact } = (await world.resolve()).status;
  expect(artifact).toMatchObject({ revision: `${version}@${digest}`, charts: ["."] });
  const paths = (await world.files()).map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["Chart.yaml", "templates/_helpers.tpl", "charts/cache/Chart.yaml"]));
  expect(paths).not.toContain("README.md");

  mkdirSync(join(folder, "pulled"));
  await helm("pull", `oci://${host}/acme/charts/shop`, "--version", version, "--plain-http", "-d", "pulled");
  expect(readFileSync(join(folder, "pulled", file)).equals(readFileSync(join(folder, file)))).toBe(true);
});

test.skipIf(!canSign("gpg"))("provenance that Helm writes and pushes is verified (with gpg)", async () => {
  registry = await startRegistryServer();
  const ana = gpgSigner("Ana <ana@acme.io>");
  const keyring = join(folder, "secret.gpg");
  writeFileSync(keyring, execFileSync("gpg", ["--batch", "--export-secret-keys"], { env: ana.env }));
  const file = await packed("1.0.0+build.7", "--sign", "--key", "Ana", "--keyring", keyring);
  await helm("push", file, `oci://${registry.host}/charts`, "--plain-http");
  const world = new SourceWorld();
  world.now = new Date();
  const helmSpec = { url: `oci://${registry.host}/charts`, chart: "shop" };
  await world.put({ helm: { ...helmSpec, verify: { provenance: { keys: [ana.publicKey] } } } });
  const { status } = await world.resolve();
  expect(status.artifact?.verified).toEqual({
    at: world.now.toISOString(),
    mode: "provenance",
    signatures: [{ object: "chart shop 1.0.0+build.7", key: ana.key, owner: "Ana <ana@acme.io>" }],
  });
  await helm("push", await packed("1.0.1"), `oci://${registry.host}/charts`, "--plain-http");
  expect(await world.ready()).toMatchObject({ status: "False", reason: "SignatureMissing" });
});
