import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startGitServer } from "#local/git/git-server.ts";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { movedHttp } from "#test/support/moved-http.ts";
import {
  type MutualTlsFront,
  newAuthority,
  newCertificate,
  type Pair,
  startMutualTlsFront,
} from "#test/support/mutual-tls-front.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const secret = "starling/git/private";
const credentials = { secret, kind: "tls" };

let root: string;
let ca: Pair;
let client: Pair;
let server: Pair;
let content: Buffer;
let world: SourceWorld;
let files: FileServer;
let target: string;
let front: MutualTlsFront;
let answer: () => FileAnswer;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-tls-"));
  ca = await newAuthority("corp");
  [client, server] = await Promise.all([newCertificate("starling", { ca }), newCertificate("server", { ca })]);
  content = Buffer.from(await tarGz([{ name: "a.yaml", body: "a: 1" }]));
});

afterAll(() => rm(root, { recursive: true, force: true }));

beforeEach(async () => {
  world = new SourceWorld();
  world.now = new Date();
  answer = () => ({ body: content });
  files = await startFileServer(() => answer());
  target = files.url;
  front = await startMutualTlsFront(() => target, { ca, server });
});

afterEach(async () => {
  await front.stop();
  await files.stop();
});

const keep = (more: object) => world.secrets.set(secret, JSON.stringify({ host: new URL(front.url).host, ...more }));
const own = () => ({ certificate: client.cert, privateKey: client.key, ca: ca.cert });
const putArchive = (kind = "tls", url = `${front.url}/a.tar.gz`) => {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return world.put({ archive: { url, sha256, credentials: { secret, kind } } });
};

describe("a Source whose server wants a client's certificate", () => {
  test("an archive is fetched with the certificate of the secret [source.tls.certificate]", async () => {
    keep(own());
    await putArchive();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(front.clients).toEqual(["corp"]);
  });

  test("a git repository is fetched with it [source.tls.certificate]", async () => {
    const git = await startGitServer({ root });
    await git.createRepository("acme/shop", { "a.yaml": "a: 1" });
    target = new URL(git.url("x")).origin;
    world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    keep(own());
    await world.put({ git: { url: `${front.url}/acme/shop`, ref: { branch: "main" }, credentials } });
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(new Set(front.clients)).toEqual(new Set(["corp"]));
    await git.stop();
  });

  test.each(["basic", "bearer"] as const)(
    "a registry that also asks for a login by %s is read with both",
    async (scheme) => {
      const login = { username: "bot", password: "s3cret" };
      const registry = await startRegistryServer({ login: { ...login, scheme } });
      registry.push("acme/shop", "latest", {
        layers: [{ mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip", content }],
      });
      target = `http://${registry.host}`;
      world.http = movedHttp(world.http, {
        "https://registry.corp.example": front.url,
        [`http://${registry.host}`]: target,
      });
      world.secrets.set(
        secret,
        JSON.stringify({ host: "registry.corp.example", ...own(), ...login, tokenHosts: [registry.host] }),
      );
      await world.put({
        oci: { url: "oci://registry.corp.example/acme/shop", credentials: { secret, kind: "basic" } },
      });
      const ready = await world.ready();
      // The token's address is not https, so that the password does not go there.
      if (scheme === "bearer") expect(ready).toMatchObject({ reason: "SecretMismatch" });
      else expect(ready).toMatchObject({ status: "True" });
      expect(new Set(front.clients)).toEqual(new Set(["corp"]));
      await registry.stop();
    },
  );

  test("a registry's token server at another host gets no certificate [source.tls.host]", async () => {
    const tokens = await startMutualTlsFront(() => target, { ca, server });
    answer = () => ({ status: 401, headers: { "www-authenticate": 'Bearer realm="https://auth.corp.example/token"' } });
    const origins = { "https://registry.corp.example": front.url, "https://auth.corp.example": tokens.url };
    world.http = movedHttp(world.http, origins);
    world.secrets.set(secret, JSON.stringify({ host: "registry.corp.example", ...own() }));
    await world.put({ oci: { url: "oci://registry.corp.example/acme/shop", credentials } });
    expect(await world.ready()).toMatchObject({ reason: "AuthenticationFailed" });
    expect([new Set(front.clients), new Set(tokens.clients)]).toEqual([new Set(["corp"]), new Set(["-"])]);
    await tokens.stop();
  });

  test("without a certificate the server refuses, and the reason names the secret's remedy", async () => {
    keep({ ca: ca.cert, username: "u", password: "p" });
    await putArchive("basic");
    expect(await world.ready()).toMatchObject({ reason: "AuthenticationFailed" });
    expect(front.clients).toContain("-");
  });

  test("the second certificate is shown when the first is refused [source.tls.certificate]", async () => {
    const foreign = await newCertificate("foreign", { ca: await newAuthority("other") });
    const both = [{ certificate: foreign.cert, privateKey: foreign.key }, own()];
    keep({ ca: ca.cert, credentials: both });
    await putArchive();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(front.clients).toEqual(["?", "corp"]);
  });

  test.each(["no", "a foreign"])(
    "a server that ends the handshake because of %s certificate refuses, too",
    async (which) => {
      const port = await freePort();
      for (const [name, text] of Object.entries({ "s.crt": server.cert, "s.key": server.key, "ca.crt": ca.cert })) {
        await writeFile(join(root, name), text);
      }
      const args = ["s_server", "-accept", `127.0.0.1:${port}`, "-cert", "s.crt", "-key", "s.key", "-CAfile", "ca.crt"];
      const openssl = spawn("openssl", [...args, "-Verify", "1", "-verify_return_error", "-www"], {
        cwd: root,
      });
      try {
        for await (const chunk of openssl.stdout) if (String(chunk).includes("ACCEPT")) break;
        const foreign = pairOf(await newCertificate("foreign", { ca: await newAuthority("other") }));
        const shown = which === "no" ? { username: "u", password: "p" } : foreign;
        world.secrets.set(secret, JSON.stringify({ host: `127.0.0.1:${port}`, ca: ca.cert, ...shown }));
        await putArchive(which === "no" ? "basic" : "tls", `https://127.0.0.1:${port}/a.tar.gz`);
        expect(await world.ready()).toMatchObject({
          reason: "AuthenticationFailed",
          message: expect.stringContaining("refuses the client's certificate, or none"),
        });
      } finally {
        openssl.kill();
      }
    },
  );
});

describe("a private authority", () => {
  test("a server of it is trusted only with the secret's ca [source.tls.host]", async () => {
    keep({ ...own(), ca: undefined });
    await putArchive();
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining('write that into "ca" of the secret'),
    });
    keep({ ...own(), ca: (await newAuthority("other")).cert });
    await putArchive();
    expect(await world.ready()).toMatchObject({ reason: "UpstreamUnavailable" });
    expect(front.clients).toEqual([]);
  });
});

describe("another server", () => {
  test("a redirect to it shows no certificate, and the secret's authority does not count there [source.tls.host]", async () => {
    const second = await startMutualTlsFront(() => target, { ca, server });
    answer = () => ({ status: 302, headers: { location: `${second.url}/a.tar.gz` } });
    keep(own());
    await putArchive();
    expect(await world.ready()).toMatchObject({ reason: "UpstreamUnavailable" });
    expect(second.clients).toEqual([]);
    world.http = new GuardedHttpRemote({ rules: addressRules("127.0.0.1"), ca: ca.cert });
    await putArchive();
    expect(await world.ready()).toMatchObject({ reason: "AuthenticationFailed" });
    expect(new Set(second.clients)).toEqual(new Set(["-"]));
    await second.stop();
  });
});

describe("a secret whose certificate cannot be used", () => {
  const cases: readonly [string, () => Promise<object> | object, string][] = [
    [
      "has expired",
      async () => pairOf(await newCertificate("old", { ca, endsInDays: -1 })),
      '"certificate" expired on',
    ],
    ["has another key", async () => ({ privateKey: (await newCertificate("b", { ca })).key }), "is not the key of"],
    ["is no PEM", () => ({ certificate: "MIIB" }), '"certificate" is no certificate in PEM'],
    ["is damaged", () => ({ certificate: client.cert.replace(/M/g, "A") }), '"certificate" is no certificate in PEM'],
    ["has a key that is no PEM", () => ({ privateKey: "s3cret" }), '"privateKey" is no private key in PEM'],
    ["has no key", () => ({ privateKey: undefined }), "does not have the form"],
    ["is of an authority that is no PEM", () => ({ ca: "corp" }), '"ca" is no certificate in PEM'],
  ];

  test.each(cases)(
    "a certificate that %s is refused by name, before anybody is asked [source.tls.unusable]",
    async (_what, more, message) => {
      const used = { ...own(), ...(await more()) };
      keep(used);
      await putArchive();
      const ready = await world.ready();
      expect(ready).toMatchObject({ reason: "InvalidCredentials", message: expect.stringContaining(message) });
      expect(JSON.stringify(ready)).not.toMatch(/s3cret|BEGIN/);
      expect(front.clients).toEqual([]);
    },
  );
});

function pairOf({ key, cert }: Pair) {
  return { certificate: cert, privateKey: key };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
