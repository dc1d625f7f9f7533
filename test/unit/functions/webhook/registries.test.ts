/** Deliveries of registries to Receivers, as their documentation shows them. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import type { ProviderName } from "#shared/fleet/kinds/receiver.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { type Delivered, WebhookWorld } from "#test/support/webhook-world.ts";

const fixture = (name: string) =>
  readFileSync(new URL(`../../../fixtures/webhooks/${name}.json`, import.meta.url), "utf8");

interface Signing {
  readonly secret: string;
  readonly body: string;
  /** Id of the Receiver. */
  readonly id: string;
}
type Proof = Pick<Delivered, "query"> & { readonly headers: Readonly<Record<string, string>> };

const hmac = (hash: string, secret: string, text: string) => createHmac(hash, secret).update(text).digest("hex");
const inUrl = ({ secret, id }: Signing): Proof => ({ headers: {}, query: `token=${hmac("sha256", secret, id)}` });
const inHeader = ({ secret }: Signing): Proof => ({ headers: { authorization: secret } });
const ofGithub =
  (event: string) =>
  ({ secret, body }: Signing): Proof => ({
    headers: { "x-github-event": event, "x-hub-signature-256": `sha256=${hmac("sha256", secret, body)}` },
  });
const ofNexus = ({ secret, body }: Signing): Proof => ({
  headers: {
    "x-nexus-webhook-id": "rm:repository:component",
    "x-nexus-webhook-signature": hmac("sha1", secret, body),
  },
});

const deliveries: readonly (readonly [
  what: string,
  provider: ProviderName,
  fixture: string,
  prove: (signing: Signing) => Proof,
  host: string,
])[] = [
  ["Docker Hub", "dockerhub", "dockerhub-push", inUrl, "docker.io"],
  ["Docker Hub by its other name", "dockerhub", "dockerhub-push", inUrl, "registry-1.docker.io"],
  ["Quay", "quay", "quay-push", inUrl, "quay.io"],
  ["Azure, with a token in the URL", "acr", "acr-push", inUrl, "acme.azurecr.io"],
  ["Azure, with a header", "acr", "acr-push", inHeader, "acme.azurecr.io"],
  ["Harbor", "harbor", "harbor-push", inHeader, "harbor.example.com:8443"],
  ["GitHub's registry", "ghcr", "ghcr-push", ofGithub("package"), "ghcr.io"],
  ["GitHub's registry, by its other event", "ghcr", "ghcr-registry", ofGithub("registry_package"), "ghcr.io"],
  ["GitHub, of a package", "github", "ghcr-push", ofGithub("package"), "ghcr.io"],
  ["Nexus", "nexus", "nexus-push", ofNexus, "nexus.example.com:5000"],
];

let world: WebhookWorld;
beforeEach(() => {
  world = new WebhookWorld();
});

async function deliver(at: string, body: string, { headers, query }: Proof) {
  const { woken, ...answer } = await world.deliver({
    host: at,
    body,
    headers,
    ...(query === undefined ? {} : { query }),
  });
  const names = polledNames(woken);
  return { ...answer, woken: names };
}

/** Sources of the pushed repository, of another one, and of git. */
async function follow(provider: ProviderName, host: string): Promise<string> {
  const add = (name: string, spec: object) => world.addSourceOf(name, sourceSpec.parse(spec));
  await add("tag", { oci: { url: `oci://${host}/acme/app`, ref: { tag: "1.4.0" } } });
  await add("other-tag", { oci: { url: `oci://${host}/acme/app`, ref: { tag: "1.3.0" } } });
  await add("latest", { oci: { url: `oci://${host}/acme/app` } });
  await add("range", { oci: { url: `oci://${host}/acme/app`, ref: { semver: ">=1" } } });
  await add("chart", { helm: { url: `oci://${host}/acme`, chart: "app" } });
  await add("other", { oci: { url: `oci://${host}/acme/app2`, ref: { tag: "1.4.0" } } });
  await add("git", { git: { url: "https://github.com/acme/app", ref: { branch: "main" } } });
  const sources = ["tag", "other-tag", "latest", "range", "chart", "other", "git"];
  return world.addReceiver("hook", { provider, sources });
}

describe.each(deliveries)("%s", (_what, provider, name, prove, host) => {
  const body = fixture(name);

  test("it polls the Sources of the repository that can take the tag [receiver.registries]", async () => {
    const at = await follow(provider, host);
    const proof = prove({ secret: "s3cret", body, id: at.slice(2) });
    expect(await deliver(at, body, proof)).toMatchObject({ status: 202, woken: ["chart", "range", "tag"] });
  });

  test("a wrong, a missing and an empty proof are refused without detail [receiver.proof]", async () => {
    const at = await follow(provider, host);
    const id = at.slice(2);
    const good = prove({ secret: "s3cret", body, id });
    const refused = { status: 401, body: '{"message":"unauthorized"}', woken: [] };
    for (const secret of ["", "other", "S3cret"])
      expect(await deliver(at, body, prove({ secret, body, id }))).toEqual(refused);
    const proofs = Object.keys(good.headers).filter((header) => /signature|authorization/.test(header));
    for (const header of proofs) {
      expect(await deliver(at, body, { headers: { ...good.headers, [header]: "" } })).toEqual(refused);
      const { [header]: _taken, ...headers } = good.headers;
      expect(await deliver(at, body, { headers })).toEqual(refused);
    }
    for (const query of ["", "token=", "token=s3cret", `other=${good.query}`])
      if (good.query !== undefined) expect(await deliver(at, body, { ...good, query })).toEqual(refused);
  });

  test.each(["", "{}", '{"token":""}'])("a secret with the value %j refuses every sender", async (value) => {
    const at = await follow(provider, host);
    world.tokens.one = value;
    for (const secret of ["", "s3cret", "undefined"])
      expect(await deliver(at, body, prove({ secret, body, id: at.slice(2) }))).toMatchObject({
        status: 503,
        woken: [],
      });
  });

  test("a body of another shape is refused, or followed no further", async () => {
    const at = await follow(provider, host);
    for (const other of ["", "[]", "null", "{}", '{"type":1}', '{"repository":{"repo_name":""}}', '{"target":[]}']) {
      const { status, woken } = await deliver(at, other, prove({ secret: "s3cret", body: other, id: at.slice(2) }));
      expect([status, woken]).toEqual([400, []]);
    }
  });
});

test("a token in the URL is for one Receiver, and neither it nor the secret is in the log [receiver.token-in-url]", async () => {
  const body = fixture("quay-push");
  const at = await follow("quay", "quay.io");
  const another = await world.addReceiver("another", { provider: "quay", sources: ["tag"] });
  const proof = inUrl({ secret: "s3cret", body, id: at.slice(2) });
  expect(await deliver(another, body, proof)).toMatchObject({ status: 401, woken: [] });
  expect(await deliver(at, body, proof)).toMatchObject({ status: 202 });
  expect(world.lines.join()).not.toMatch(new RegExp(`s3cret|${proof.query?.slice(6)}`));
});

test("official images of Docker Hub have a short name, too", async () => {
  await world.addSourceOf("short", sourceSpec.parse({ oci: { url: "oci://docker.io/nginx", ref: { tag: "1.4.0" } } }));
  const at = await world.addReceiver("hook", { provider: "dockerhub", sources: ["short"] });
  const body = fixture("dockerhub-push").replace('"repo_name": "acme/app"', '"repo_name": "library/nginx"');
  const proof = inUrl({ secret: "s3cret", body, id: at.slice(2) });
  expect(await deliver(at, body, proof)).toMatchObject({ status: 202, woken: ["short"] });
});

test.each([
  ["acr", "acr-push", inHeader, '"push"', '"ping"', 200],
  ["acr", "acr-push", inHeader, '"push"', '"quarantine"', 202],
  ["harbor", "harbor-push", inHeader, "PUSH_ARTIFACT", "SCANNING_COMPLETED", 202],
  ["ghcr", "ghcr-push", ofGithub("ping"), "", "", 200],
  ["ghcr", "ghcr-push", ofGithub("push"), "", "", 202],
  ["ghcr", "ghcr-push", ofGithub("package"), '"package_type": "CONTAINER"', '"package_type": "npm"', 202],
  ["nexus", "nexus-push", ofNexus, '"docker"', '"npm"', 202],
] as const)(
  "%s, %s: an event that changes no artifact polls nothing (%#)",
  async (provider, name, prove, from, to, status) => {
    const at = await follow(provider, "acme.azurecr.io");
    const body = fixture(name).replace(from, to);
    expect(await deliver(at, body, prove({ secret: "s3cret", body, id: at.slice(2) }))).toMatchObject({
      status,
      woken: [],
    });
  },
);
