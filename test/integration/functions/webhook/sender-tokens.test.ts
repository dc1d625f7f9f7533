/** Receivers whose senders have a token of an issuer: a real issuer on loopback, and the webhook over HTTP. */
import { createHmac } from "node:crypto";
import { RE2JS } from "re2js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { movedHttp } from "#test/support/moved-http.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { discoveryPath, keysPath, startTokenIssuer, type TokenIssuer } from "#test/support/token-issuer.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

let world: WebhookWorld;
let issuer: TokenIssuer;
let front: HttpFront;
let at: string;
beforeEach(async () => {
  world = new WebhookWorld();
  issuer = await startTokenIssuer(world.now);
  world.http = new GuardedHttpRemote({ rules: addressRules("127.0.0.1"), timeoutSeconds: 1 });
  const webhook = sharedSandbox((event) => world.handle(event));
  front = await startHttpFront({
    routes: [
      {
        routeKey: "POST /hook/r/{receiver}",
        authorization: "none",
        lambda: lambdaFunction({ functionName: "webhook", timeoutSeconds: 10, newSandbox: () => webhook }),
      },
    ],
    principals: new Principals([]),
  });
  await world.addSource("main", { ref: { branch: "main" } });
  await world.addSource("other", { url: "https://github.com/acme/other" });
  at = await world.addReceiver("ci", {
    provider: "generic-oidc",
    sources: ["main", "other"],
    oidc: {
      issuer: issuer.url,
      audience: "starling",
      claims: { repository: "acme/(shop|web)", ref: "refs/heads/main" },
    },
  });
});
afterEach(async () => {
  await front.stop();
  await issuer.stop();
});

const shop = { repository: "acme/shop", ref: "refs/heads/main" };
const refused = { status: 401, body: { message: "unauthorized" }, woken: [] };
const accepted = { status: 202, woken: ["main", "other"] };

async function deliver(token: string | undefined, { body = "", path = at, scheme = "Bearer" } = {}) {
  const headers = token === undefined ? {} : { authorization: `${scheme} ${token}` };
  const answer = await fetch(`${front.url}/hook/${path}`, { method: "POST", headers, body });
  const woken = polledNames(world.sender.take());
  return { status: answer.status, body: (await answer.json()) as object, woken };
}

const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a token of OpenID Connect", () => {
  test("a token whose claims fit polls the listed Sources, as far as the body does not say less [receiver.token]", async () => {
    const token = await issuer.sign(shop);
    expect(await deliver(token)).toMatchObject(accepted);
    expect(await deliver(token, { scheme: "bearer" })).toMatchObject(accepted);
    expect(await deliver(token, { body: '{"url":"https://github.com/acme/other"}' })).toMatchObject({
      status: 202,
      woken: ["other"],
    });
    expect(await deliver(token, { body: "not JSON" })).toMatchObject({ status: 400, woken: [] });
    expect(issuer.asked()).toEqual([discoveryPath, keysPath]);
    expect(world.lines.join()).not.toContain(token);
  });

  test("a claim must fit its pattern as a whole, and must be a text, a truth value or a number [receiver.token]", async () => {
    for (const claims of [
      {},
      { repository: "acme/shop" },
      { ...shop, repository: "acme/shop2" },
      { ...shop, repository: "evil/acme/shop" },
      { ...shop, repository: "acme/shop\nacme/web" },
      { ...shop, repository: ["acme/shop"] },
      { ...shop, repository: { toString: "acme/shop" } },
      { ...shop, repository: null },
      { ...shop, ref: true },
    ])
      expect(await deliver(await issuer.sign(claims))).toEqual(refused);
    expect(world.lines.at(-1)).toContain("its claim ref is true");
    const numbers = await world.addReceiver("numbers", {
      provider: "generic-oidc",
      oidc: { issuer: issuer.url, audience: "starling", claims: { id: "9007199254740992|7", protected: "true" } },
    });
    expect(await deliver(await issuer.sign({ id: 7, protected: true }), { path: numbers })).toMatchObject({
      status: 202,
    });
    // A number that JSON rounds could be that of somebody else.
    expect(await deliver(await issuer.sign({ id: 2 ** 53, protected: true }), { path: numbers })).toEqual(refused);
  });

  test("a stored Receiver whose claims name no owner takes no token of a public issuer", async () => {
    const github = "https://token.actions.githubusercontent.com";
    world.http = movedHttp(new GuardedHttpRemote({ rules: addressRules("127.0.0.1") }), { [github]: issuer.url });
    issuer.instead.set(discoveryPath, { body: JSON.stringify({ issuer: github, jwks_uri: `${github}${keysPath}` }) });
    const of = async (name: string, repository: string) => {
      const oidc = { issuer: github, audience: "starling", claims: { repository } };
      return world.addReceiver(name, { provider: "generic-oidc", oidc });
    };
    const open = await of("open", ".*/shop");
    for (const repository of ["evil/shop", "acme/shop"])
      expect(await deliver(await issuer.sign({ repository, iss: github }), { path: open })).toEqual(refused);
    expect(world.lines.at(-1)).toContain("spec.oidc.claims.repository fits owners that it does not name");
    const named = await of("named", "acme/.*");
    const token = await issuer.sign({ ...shop, iss: github });
    expect(await deliver(token, { path: named })).toMatchObject({ status: 202, woken: ["main"] });
  });

  test("the patterns, which can be large, cost nothing before the token is verified", async () => {
    const stranger = await startTokenIssuer(world.now);
    const compile = vi.spyOn(RE2JS, "compile");
    try {
      expect(await deliver(undefined)).toEqual(refused);
      expect(await deliver(await stranger.sign({ ...shop, iss: issuer.url }))).toEqual(refused);
      expect(compile).not.toHaveBeenCalled();
      expect(await deliver(await issuer.sign(shop))).toMatchObject(accepted);
      expect(compile).toHaveBeenCalled();
    } finally {
      compile.mockRestore();
      await stranger.stop();
    }
  });

  test("a name of a claim that every object has is no claim", async () => {
    const path = await world.addReceiver("odd", {
      provider: "generic-oidc",
      oidc: { issuer: issuer.url, audience: "starling", claims: { constructor: ".*", sub: "ci" } },
    });
    expect(await deliver(await issuer.sign({ sub: "ci" }), { path })).toEqual(refused);
  });

  const now = Date.parse("2026-01-01T01:00:00Z") / 1000;
  test.each([
    ["another issuer", { iss: "https://evil.example" }, "its issuer is"],
    ["no issuer", { iss: undefined }, "its issuer is missing"],
    ["a list of issuers", { iss: ["https://evil.example"] }, "its issuer is"],
    ["another audience", { aud: "flux" }, "aud is"],
    ["a list without the audience", { aud: ["flux", "starling2"] }, "aud is"],
    ["a list of lists", { aud: [["starling"]] }, "aud is"],
    ["no audience", { aud: undefined }, "aud is missing"],
    ["an end in the past", { exp: now - 61 }, "exp is"],
    ["no end", { exp: undefined }, "exp is missing"],
    ["a text as its end", { exp: String(now + 60) }, "exp is"],
    ["a beginning in the future", { nbf: now + 61 }, "nbf is"],
    ["a date in the future", { iat: now + 61 }, "iat is"],
    ["no date", { iat: undefined }, "iat is missing"],
    ["a date of two days ago", { iat: now - 2 * 86_400, exp: now + 86_400 }, "iat is"],
  ])("a token with %s is refused without detail, and the log says why [receiver.token]", async (_what, claims, why) => {
    expect(await deliver(await issuer.sign({ ...shop, ...claims }))).toEqual(refused);
    expect(world.lines.at(-1)).toContain(why);
    expect(world.lines.at(-1)).toContain('"kind":"Receiver","namespace":"shop","name":"ci"');
  });

  test("a list of audiences with the right one counts, and clocks may differ by a minute", async () => {
    const late = { iat: now + 59, nbf: now + 59, exp: now - 59 };
    expect(await deliver(await issuer.sign({ ...shop, ...late, aud: ["flux", "starling"] }))).toMatchObject(accepted);
  });

  test("the last of two members of one name counts, as RFC 7519 says", async () => {
    const claims = `{"repository":"acme/shop","repository":"evil/shop","iss":"${issuer.url}","aud":"starling"}`;
    const [head = "", , signature = ""] = (await issuer.sign(shop)).split(".");
    expect(await deliver(`${head}.${Buffer.from(claims).toString("base64url")}.${signature}`)).toEqual(refused);
  });

  test.each(["PS256", "ES256", "ES384", "EdDSA"])("a key of %s counts", async (alg) => {
    const key = await issuer.publish("second", alg);
    expect(await deliver(await issuer.sign(shop, { alg, kid: "second", key }))).toMatchObject(accepted);
  });

  test("a token that nobody signed, or that is signed with what everybody knows, is refused [receiver.token-signature]", async () => {
    const claims = b64({ ...shop, iss: issuer.url, aud: "starling", iat: now, exp: now + 300 });
    const none = `${b64({ alg: "none" })}.${claims}.`;
    const noneOdd = `${b64({ alg: "nOnE", kid: "first" })}.${claims}.AA`;
    const head = b64({ alg: "HS256", kid: "first" });
    const publicKey = JSON.stringify(issuer.keys[0]);
    const hmac = createHmac("sha256", publicKey).update(`${head}.${claims}`).digest("base64url");
    issuer.keys.push({ kty: "oct", k: Buffer.from("shared").toString("base64url"), kid: "first", alg: "HS256" });
    const shared = createHmac("sha256", "shared").update(`${head}.${claims}`).digest("base64url");
    for (const token of [none, noneOdd, `${head}.${claims}.${hmac}`, `${head}.${claims}.${shared}`])
      expect(await deliver(token)).toEqual(refused);
    // Nothing of it was worth a question.
    expect(issuer.asked()).toEqual([]);
    const [start = "", , signature = ""] = (await issuer.sign(shop)).split(".");
    expect(await deliver(`${start}.${claims.slice(0, -1)}A.${signature}`)).toEqual(refused);
    expect(await deliver(`${start}.${claims}.${signature.slice(0, -4)}`)).toEqual(refused);
  });

  test("nothing in the head of a token says where its key is [receiver.token-signature]", async () => {
    const stranger = await startTokenIssuer(world.now);
    const [own = {}] = stranger.keys;
    for (const head of [
      { jku: `${stranger.url}${keysPath}` },
      { x5u: `${stranger.url}/certificate` },
      { jwk: own },
      { kid: `${stranger.url}${keysPath}` },
      { kid: "../../keys" },
      { crit: ["x"], x: 1 },
    ])
      expect(await deliver(await stranger.sign({ ...shop, iss: issuer.url }, head))).toEqual(refused);
    expect(stranger.asked()).toEqual([]);
    await stranger.stop();
  });

  test("no token, half a token, and one of more than 16 KiB are refused without a question to the issuer", async () => {
    const token = await issuer.sign(shop);
    const [head = "", claims = ""] = token.split(".");
    for (const text of [
      undefined,
      "",
      "x",
      `${head}.${claims}`,
      `${token} ${token}`,
      "a.b.c",
      `${"A".repeat(9000)}.e30.AA`,
    ])
      expect(await deliver(text)).toEqual(refused);
    expect(await deliver(token, { scheme: "Basic" })).toEqual(refused);
    expect(issuer.asked()).toEqual([]);
    const huge = await world.deliver({
      host: at,
      headers: { authorization: `Bearer ${"A".repeat(17_000)}` },
      body: "",
    });
    expect(huge).toMatchObject({ status: 401 });
    expect(world.lines.at(-1)).toContain("more than 16384 characters");
  });
});

describe("the keys of an issuer", () => {
  const minutes = (count: number) => {
    world.now = new Date(world.now.getTime() + count * 60_000);
  };
  const unknown = async (kid: string) => issuer.sign(shop, { kid });

  test("tokens of keys that nobody has ask the issuer once a minute at most [receiver.issuer]", async () => {
    await deliver(await issuer.sign(shop));
    expect(issuer.asked()).toHaveLength(2);
    for (const kid of ["a", "b", "c"]) expect(await deliver(await unknown(kid))).toEqual(refused);
    expect(issuer.asked()).toEqual([]);
    minutes(1);
    await Promise.all(["d", "e", "f", "g"].map(async (kid) => deliver(await unknown(kid))));
    expect(issuer.asked()).toEqual([discoveryPath, keysPath]);
    expect(await deliver(await unknown("h"))).toEqual(refused);
    expect(issuer.asked()).toEqual([]);
  });

  test("a new key counts as soon as a token names it, and a withdrawn key for ten minutes [receiver.issuer]", async () => {
    expect(await deliver(await issuer.sign(shop))).toMatchObject(accepted);
    minutes(2);
    const key = await issuer.publish("second", "ES256");
    const renewed = { alg: "ES256", kid: "second", key };
    expect(await deliver(await issuer.sign({ ...shop, iat: now() }, renewed))).toMatchObject(accepted);
    issuer.keys.shift();
    minutes(9);
    expect(await deliver(await issuer.sign(fresh()))).toMatchObject(accepted);
    minutes(1);
    expect(await deliver(await issuer.sign(fresh()))).toEqual(refused);
    expect(await deliver(await issuer.sign(fresh(), renewed))).toMatchObject(accepted);
  });

  test("an issuer that does not answer is asked once a minute, and its last keys count for an hour [receiver.issuer]", async () => {
    await deliver(await issuer.sign(shop));
    issuer.instead.set(discoveryPath, "silent");
    minutes(30);
    expect(await deliver(await issuer.sign(fresh()))).toMatchObject(accepted);
    minutes(31);
    const unavailable = { status: 503, body: { message: "unavailable" }, woken: [] };
    issuer.asked();
    for (let count = 0; count < 3; count++) expect(await deliver(await issuer.sign(fresh()))).toEqual(unavailable);
    expect(issuer.asked()).toEqual([discoveryPath]);
    expect(world.lines.at(-1)).toContain("could not be fetched: no answer within 1 s");
    issuer.instead.clear();
    minutes(1);
    expect(await deliver(await issuer.sign(fresh()))).toMatchObject(accepted);
  });

  test("an issuer that answers otherwise than OpenID Connect says proves nobody", async () => {
    const other = await startTokenIssuer(world.now);
    const document = (more: object) => ({
      body: JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, ...more }),
    });
    const cases = [
      [discoveryPath, document({ issuer: other.url }), "is of the issuer"],
      [discoveryPath, document({ issuer: `${issuer.url}/` }), "is of the issuer"],
      [discoveryPath, document({ jwks_uri: "http://keys.example.com/keys" }), "unencrypted"],
      [discoveryPath, document({ jwks_uri: "file:///etc/passwd" }), "scheme file"],
      [discoveryPath, document({ jwks_uri: "http://169.254.169.254/keys" }), "unencrypted"],
      [discoveryPath, { status: 302, headers: { location: `${other.url}${discoveryPath}` } }, "a redirect"],
      [discoveryPath, { body: "[]" }, "does not answer as OpenID Connect says"],
      [discoveryPath, { status: 500 }, "HTTP 500"],
      [discoveryPath, "endless", "more than 262144 bytes"],
      [keysPath, { status: 307, headers: { location: `${other.url}${keysPath}` } }, "a redirect"],
      [keysPath, "endless", "more than 262144 bytes"],
      [
        keysPath,
        { body: JSON.stringify({ keys: Array.from({ length: 101 }, () => issuer.keys[0]) }) },
        "OpenID Connect",
      ],
      [keysPath, { body: "{}" }, "does not answer as OpenID Connect says"],
      [
        keysPath,
        { body: JSON.stringify({ keys: [{ ...issuer.keys[0], n: "" }] }) },
        "that a token names cannot be used",
      ],
    ] as const;
    for (const [path, answer, why] of cases) {
      issuer.instead.clear();
      issuer.instead.set(path, answer);
      expect(await deliver(await issuer.sign(fresh()))).toMatchObject({ status: 503, woken: [] });
      expect(world.lines.at(-1)).toContain(why);
      minutes(1);
    }
    expect(other.asked()).toEqual([]);
    await other.stop();
  });

  test("a private address is not asked [receiver.issuer]", async () => {
    world.http = new GuardedHttpRemote({ rules: addressRules("") });
    expect(await deliver(await issuer.sign(shop))).toMatchObject({ status: 503, woken: [] });
    expect(issuer.asked()).toEqual([]);
    expect(world.lines.at(-1)).toContain("AddressRefused");
  });

  const now = () => Math.floor(world.now.getTime() / 1000);
  const fresh = () => ({ ...shop, iat: now(), exp: now() + 300 });
});

describe("Google's Pub/Sub", () => {
  const email = "push@acme.iam.gserviceaccount.com";
  const genuine = { iss: "https://accounts.google.com", aud: "https://hooks.example/r", email, email_verified: true };
  let path: string;
  beforeEach(async () => {
    const google = { audience: "https://hooks.example/r", email };
    world.http = movedHttp(new GuardedHttpRemote({ rules: addressRules("127.0.0.1") }), {
      "https://accounts.google.com": issuer.url,
      "https://www.googleapis.com": issuer.url,
    });
    issuer.instead.set(discoveryPath, {
      body: JSON.stringify({ issuer: "https://accounts.google.com", jwks_uri: "https://www.googleapis.com/keys" }),
    });
    for (const [name, spec] of Object.entries({
      tag: { oci: { url: "oci://us-east1-docker.pkg.dev/acme/shop/app", ref: { tag: "1.4.0" } } },
      range: { oci: { url: "oci://us-east1-docker.pkg.dev/acme/shop/app", ref: { semver: ">=1" } } },
      old: { oci: { url: "oci://gcr.io/acme/app", ref: { tag: "1.4.0" } } },
    }))
      await world.addSourceOf(name, sourceSpec.parse(spec));
    path = await world.addReceiver("google", { provider: "gcr", sources: ["main", "tag", "range", "old"], google });
  });

  const pushed = (event: unknown) =>
    JSON.stringify({
      message: { data: Buffer.from(JSON.stringify(event)).toString("base64"), messageId: "1", attributes: {} },
      subscription: "projects/acme/subscriptions/images",
    });
  const app = "us-east1-docker.pkg.dev/acme/shop/app";
  const digest = `${app}@sha256:${"6".repeat(64)}`;
  const inserted = pushed({ action: "INSERT", digest, tag: `${app}:1.4.0` });

  test("a pushed image polls the Sources that can take it [receiver.google]", async () => {
    const token = await issuer.sign(genuine);
    const bare = await issuer.sign({ ...genuine, iss: "accounts.google.com" });
    for (const each of [token, bare])
      expect(await deliver(each, { path, body: inserted })).toMatchObject({ status: 202, woken: ["range", "tag"] });
    const of = async (event: unknown) => (await deliver(token, { path, body: pushed(event) })).woken;
    expect(await of({ action: "INSERT", digest, tag: `${app}:nightly` })).toEqual([]);
    expect(await of({ action: "INSERT", digest })).toEqual(["range", "tag"]);
    expect(await of({ action: "DELETE", tag: "gcr.io/acme/app:1.4.0" })).toEqual(["old"]);
    // Pub/Sub would send them again for days if they were refused.
    for (const other of ["hello", { action: "BUILD" }, {}, { action: "INSERT" }]) expect(await of(other)).toEqual([]);
    expect(await deliver(token, { path, body: pushed("hello") })).toMatchObject({ status: 202 });
    expect(await deliver(token, { path, body: '{"message":{"data":"%%%"}}' })).toMatchObject({ status: 400 });
    expect(await deliver(token, { path, body: "{}" })).toMatchObject({ status: 400 });
  });

  test.each([
    ["another address", { email: "evil@evil.iam.gserviceaccount.com" }],
    ["the address in other letters", { email: email.toUpperCase() }],
    ["no address", { email: undefined }],
    ["a list of addresses", { email: [email] }],
    ["an address that Google did not verify", { email_verified: false }],
    ["no word about that", { email_verified: undefined }],
    ["a text about that", { email_verified: "true" }],
    ["another audience", { aud: "https://hooks.example/r2" }],
    ["another issuer", { iss: "https://accounts.google.com.evil.example" }],
  ])("a token of Google with %s is refused [receiver.google]", async (_what, claims) => {
    expect(await deliver(await issuer.sign({ ...genuine, ...claims }), { path, body: inserted })).toEqual(refused);
  });
});
