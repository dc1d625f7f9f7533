import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { movedGit, signatureOf, signedForGit, signingKey } from "#test/support/aws-signature.ts";
import { startCheckedFront } from "#test/support/checked-front.ts";
import { type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { movedHttp } from "#test/support/moved-http.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const account = "111122223333";
const registryHost = `${account}.dkr.ecr.eu-west-1.amazonaws.com`;
const apiHost = "api.ecr.eu-west-1.amazonaws.com";
const credentials = { kind: "aws" };

let world: SourceWorld;

beforeEach(() => {
  world = new SourceWorld();
  // Tokens are known to the process, so that each test has a key of its own.
  const accessKeyId = `AKID${Math.random().toString(36).slice(2).toUpperCase()}`;
  const keys = { accessKeyId, secretAccessKey: signingKey, sessionToken: "session/token" };
  world.role = { credentials: async () => keys, grants: [{ namespaces: ["shop"], arn: arnOf("acme/*") }] };
});

const arnOf = (name: string, owner = account) => `arn:aws:ecr:eu-west-1:${owner}:repository/${name}`;

const hex = (text: string) => createHash("sha256").update(text).digest("hex");

describe("a Source of ECR that signs in as Starling's own role", () => {
  let registry: RegistryServer;
  let api: FileServer;
  let token: () => FileAnswer;
  const password = "ecr-pw";

  beforeEach(async () => {
    registry = await startRegistryServer({ login: { scheme: "basic", username: "AWS", password } });
    const content = await tarGz([{ name: "a.yaml", body: "a: 1" }]);
    registry.push("acme/shop", "latest", {
      layers: [{ mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip", content }],
    });
    token = () => tokenOf(password);
    api = await startFileServer(() => token());
    world.http = movedHttp(world.http, {
      [`https://${registryHost}`]: `http://${registry.host}`,
      [`https://${apiHost}`]: api.url,
    });
    await world.put({ oci: { url: `oci://${registryHost}/acme/shop`, credentials } });
  });

  afterEach(async () => {
    await registry.stop();
    await api.stop();
  });

  function tokenOf(secret: string): FileAnswer {
    const authorizationToken = Buffer.from(`AWS:${secret}`).toString("base64");
    const expiresAt = world.now.getTime() / 1000 + 12 * 3600 + 0.5;
    return {
      body: JSON.stringify({ authorizationData: [{ authorizationToken, expiresAt, proxyEndpoint: "https://x" }] }),
    };
  }

  test("a token is asked for with the role's signature, and used until shortly before its end [source.aws.ecr]", async () => {
    expect(await world.ready()).toMatchObject({ status: "True" });
    world.now = new Date(world.now.getTime() + 11 * 3_600_000);
    await world.put({ oci: { url: `oci://${registryHost}/acme/shop`, ref: { semver: "*" }, credentials } });
    await world.resolve();
    expect(api.asked).toHaveLength(1);
    world.now = new Date(world.now.getTime() + 51 * 60_000);
    await world.resolve();
    expect(api.asked).toHaveLength(2);
    const [first] = api.asked;
    const headers: Record<string, unknown> = { ...first?.headers };
    const body = first?.body;
    expect([headers["x-amz-target"], body]).toEqual([
      "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
      "{}",
    ]);
    const [, scope, signed = "", signature] =
      /^AWS4-HMAC-SHA256 Credential=[A-Z0-9]+\/(\S+), SignedHeaders=(\S+), Signature=(\S+)$/.exec(
        String(headers.authorization),
      ) ?? [];
    expect(scope).toBe("20260301/eu-west-1/ecr/aws4_request");
    const names = signed.split(";");
    expect(names).toEqual(expect.arrayContaining(["host", "x-amz-date", "x-amz-security-token", "x-amz-target"]));
    // The server of the test has another address than the one that is signed.
    const values = names.map((name) => `${name}:${name === "host" ? apiHost : headers[name]}\n`).join("");
    const canonical = ["POST", "/", "", values, signed, hex("{}")].join("\n");
    const time = String(headers["x-amz-date"]);
    expect(signature).toBe(signatureOf({ time, region: "eu-west-1", service: "ecr", canonical }));
  });

  test("a token that the registry refuses is renewed once [source.aws.ecr]", async () => {
    token = () => tokenOf(api.asked.length === 1 ? "old-pw" : password);
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(api.asked).toHaveLength(2);
    token = () => tokenOf("never");
    world.now = new Date(world.now.getTime() + 12 * 3_600_000);
    expect(await world.ready()).toMatchObject({
      reason: "AuthenticationFailed",
      message: expect.not.stringContaining("never"),
    });
    expect(api.asked).toHaveLength(4);
  });

  test("a chart of ECR is read, also of another account that the operator named [source.aws.ecr]", async () => {
    const other = `444455556666.dkr.ecr.eu-west-1.amazonaws.com`;
    world.http = movedHttp(world.http, { [`https://${other}`]: `http://${registry.host}` });
    world.role = { ...world.role, grants: [{ arn: arnOf("acme/*", "444455556666") }] };
    await world.put({ oci: { url: `oci://${other}/acme/shop`, credentials } });
    expect(await world.ready()).toMatchObject({ status: "True" });
    await world.put({ helm: { url: `oci://${other}/acme`, chart: "none", credentials } });
    expect(await world.ready()).toMatchObject({ reason: "UpstreamNotFound" });
  });

  test.each<[string, object]>([
    ["another repository", { namespaces: ["shop"], arn: arnOf("other/*") }],
    ["another account", { namespaces: ["shop"], arn: arnOf("acme/*", "444455556666") }],
    ["another namespace", { namespaces: ["blog", "shop-2"], arn: arnOf("acme/*") }],
  ])(
    "a role that is granted for %s alone asks nobody, and the reason has the entry to add [source.aws.granted]",
    async (_what, grant) => {
      world.role = { ...world.role, grants: [grant as { arn: string }] };
      expect(await world.ready()).toMatchObject({
        reason: "AwsSourceDenied",
        message: expect.stringContaining(`add ${arnOf("acme/shop")}:shop to the setting awsSources`),
      });
      expect(api.asked).toEqual([]);
    },
  );

  test.each<[string, FileAnswer, string]>([
    [
      "denies it",
      { status: 400, body: '{"__type":"AccessDeniedException","Message":"s3cret"}' },
      "AuthenticationFailed",
    ],
    ["fails", { status: 500, body: "s3cret" }, "UpstreamUnavailable"],
    ["gives no JSON", { body: "s3cret" }, "UpstreamUnavailable"],
    ["gives no token", { body: '{"authorizationData":[]}' }, "UpstreamUnavailable"],
    ["never ends", "endless", "UpstreamTooLarge"],
  ])("an API that %s is named", async (_what, answer, reason) => {
    token = () => answer;
    const ready = await world.ready();
    expect(ready).toMatchObject({ reason });
    expect(JSON.stringify(ready)).not.toContain("s3cret");
  });
});

describe("a Source of CodeCommit or of a connection that signs in as Starling's own role", () => {
  const connection = `git-http/${account}/eu-west-1/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/acme/shop.git`;

  test.each([
    [
      "codecommit",
      "git-codecommit.eu-west-1.amazonaws.com",
      "v1/repos/shop",
      `arn:aws:codecommit:eu-west-1:${account}:shop`,
    ],
    [
      "codeconnections",
      "codeconnections.eu-west-1.amazonaws.com",
      connection,
      `arn:aws:codeconnections:eu-west-1:${account}:connection/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0`,
    ],
  ])("%s takes the signature that a server verifies by itself [source.aws.git]", async (_service, host, path, arn) => {
    const git = await startOwnGitServer();
    await git.createRepository(path.replace(/\.git$/, ""), { "a.yaml": "a: 1" });
    const verdicts = new Set<boolean>();
    const front = await startCheckedFront({
      target: () => new URL(git.url("x")).origin,
      isLetIn({ headers }) {
        const { token, time } = signedForGit(headers, { host, path }) ?? {};
        const verdict = token === "session/token" && time === "20260301T100000";
        verdicts.add(verdict);
        return verdict;
      },
    });
    world.git = movedGit(
      new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") }),
      `https://${host}`,
      front.origin,
    );
    await world.put({ git: { url: `https://${host}/${path}`, ref: { branch: "main" }, credentials } });
    expect(await world.ready()).toMatchObject({ reason: "AwsSourceDenied" });
    expect(verdicts).toEqual(new Set());
    world.role = { ...world.role, grants: [{ arn }] };
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(verdicts).toEqual(new Set([true]));
    await front.stop();
    await git.stop();
  });
});
