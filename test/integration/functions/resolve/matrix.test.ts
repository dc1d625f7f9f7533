/**
 * Every kind of upstream with every policy, every way to sign in and every verification: it works, or the document is
 * refused for one of its fields.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { cosignKeyPair } from "#local/registry/cosign-keys.ts";
import { jsonSchemaOf, parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import type { FeedCredentials } from "#test/support/feed-logins.ts";
import { pgpKey } from "#test/support/pgp-keys.ts";
import { propertyRuns } from "#test/support/property-runs.ts";
import { conditionsOf } from "#test/support/signed-sources.ts";
import { type PrivateSigstore, startSigstore } from "#test/support/sigstore.ts";
import { type Feed, type FeedKeys, type FeedVerification, feedKinds } from "#test/support/source-feeds.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const issuer = "https://token.acme.example";
let sigstore: PrivateSigstore;
let bot: FeedKeys;
let stranger: FeedKeys;
let feed: Feed | undefined;

beforeAll(async () => {
  sigstore = await startSigstore();
  const keysOf = async (name: string): Promise<FeedKeys> => ({
    pgp: await pgpKey(),
    cosign: cosignKeyPair(),
    signed: (statement) => sigstore.bundle(statement, { issuer, name }),
  });
  bot = await keysOf("bot@acme.example");
  stranger = await keysOf("stranger@acme.example");
});
afterAll(() => sigstore.stop());
afterEach(async () => {
  await feed?.stop();
  feed = undefined;
});

const combinations = feedKinds.flatMap((kind) =>
  kind.policies.flatMap((policy, ofPolicies) =>
    kind.credentials.flatMap((credentials, ofCredentials) =>
      kind.verifications.map((verification, ofVerifications) => ({
        title: `${kind.name}, ${policy.name}, credentials ${credentials}, verification ${verification}`,
        isQuick: !kind.name.startsWith("git"),
        isTurn: ofCredentials === 0 || (ofPolicies + ofCredentials) % kind.verifications.length === ofVerifications,
        ...{ kind, policy, credentials, verification },
      })),
    ),
  ),
);

// The server of git starts three programs for each request: by day each of its logins meets one verification for each policy.
const usual = 1;
const isNight = propertyRuns(usual) > usual;
const played = combinations.filter(({ isQuick, isTurn }) => isQuick || isTurn || isNight);

function verifyOf(verification: FeedVerification): object | undefined {
  const keys = [bot.pgp.publicKey];
  switch (verification) {
    case "none":
      return undefined;
    case "OpenPGP":
      return { mode: "HEAD", keys };
    case "provenance":
      return { provenance: { keys } };
    case "cosign":
      return { cosign: { keys: [bot.cosign.publicKey] } };
    case "keyless":
      return { cosign: sigstore.trustIn({ issuer, name: "bot@acme.example" }) };
  }
}

const unverified = {
  unsigned: /^(SignatureMissing|ProvenanceMissing)$/,
  foreign: /^(SignatureKeyUnknown|SignatureIdentityUnknown)$/,
};

function specOf({ kind, upstream, login }: Feed, members: object, verification: FeedVerification): object {
  const verify = verifyOf(verification);
  return {
    [kind]: {
      ...upstream,
      ...members,
      ...(login.credentials === undefined ? {} : { credentials: login.credentials }),
      ...(verify === undefined ? {} : { verify }),
    },
  };
}

describe.each(played.map((each) => [each.title, each] as const))("%s", (_title, combination) => {
  const { kind, policy, credentials, verification } = combination;
  const key = () => (verification === "none" ? undefined : bot);

  test("the published content is stored, and nothing else [source.verify.every-kind]", async () => {
    const world = new SourceWorld();
    world.now = new Date();
    feed = await kind.start({ credentials, verification, world });
    await world.put({ external: { principals: ["arn:aws:iam::111122223333:role/ci"] } });
    const published = await feed.publish("1.0.0", "first", key());
    const spec = specOf(feed, policy.members(published ?? ""), verification);
    expect(problemsOf(spec)).toEqual([]);
    await world.put(spec);

    // A Source that may not sign in gets nothing, and no content is sent.
    if (feed.login.credentials !== undefined) {
      feed.login.deny();
      const refused = await world.resolve();
      expect(conditionsOf(refused).Ready).toMatchObject({
        status: "False",
        reason: expect.stringMatching(feed.login.refusal),
      });
      expect(refused.status.artifact).toBeUndefined();
      expect(feed.contentRequests()).toBe(0);
      expect(JSON.stringify(refused)).not.toContain("not-this-one");
      feed.login.allow();
    }

    const first = await world.resolve();
    expect(conditionsOf(first).Ready).toMatchObject({ status: "True" });
    expect(await feed.stored()).toBe("first");

    // An untrusted version is not fetched, and the last good artifact stays.
    if (verification !== "none") {
      const before = feed.contentRequests();
      for (const [version, by, reason] of [
        ["1.1.0", undefined, unverified.unsigned],
        ["1.2.0", stranger, unverified.foreign],
      ] as const) {
        await feed.publish(version, `untrusted ${version}`, by);
        const { status } = await world.resolve();
        expect(status.artifact).toEqual(first.status.artifact);
        if (policy.takes(version))
          expect(conditionsOf({ status })).toMatchObject({
            Ready: { status: "False", reason: expect.stringMatching(reason) },
            SourceVerified: { status: "False" },
          });
      }
      expect(feed.contentRequests()).toBe(before);
    }

    for (const version of ["1.3.0", "2.0.0"]) {
      const before = await feed.stored();
      await feed.publish(version, `content of ${version}`, key());
      expect(conditionsOf(await world.resolve()).Ready).toMatchObject({ status: "True" });
      expect(await feed.stored()).toBe(policy.takes(version) ? `content of ${version}` : before);
    }

    // An unchanged upstream costs no content.
    const asked = feed.contentRequests();
    await world.resolve();
    expect(feed.contentRequests()).toBe(asked);
  });
});

/** The document's problems, as an apply tells them. */
function problemsOf(spec: object): readonly { readonly field: string; readonly message: string }[] {
  const metadata = { name: "app", namespace: "shop" };
  const parsed = parseDocument({ apiVersion: "starling.dev/v1alpha1", kind: "Source", metadata, spec });
  return parsed.ok ? semanticProblems(parsed.document) : parsed.problems;
}

const account = "111122223333";
const place = "files.acme.example/app";
/** How a document states each way to sign in, and an address where it could be meant. */
const statements: Readonly<Record<FeedCredentials, { readonly kind?: string; readonly address: string }>> = {
  none: { address: place },
  basic: { kind: "basic", address: place },
  bearer: { kind: "bearer", address: place },
  tls: { kind: "tls", address: place },
  authority: { kind: "basic", address: place },
  ssh: { kind: "ssh", address: place },
  token: { kind: "basic", address: place },
  dockerConfig: { kind: "dockerConfig", address: place },
  githubApp: { kind: "githubApp", address: place },
  ECR: { kind: "aws", address: `${account}.dkr.ecr.eu-west-1.amazonaws.com/app` },
  CodeCommit: { kind: "aws", address: "git-codecommit.eu-west-1.amazonaws.com/v1/repos/app" },
  CodeConnections: {
    kind: "aws",
    address: `codeconnections.eu-west-1.amazonaws.com/git-http/${account}/eu-west-1/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/acme/app.git`,
  },
};
const allCredentials = Object.keys(statements) as readonly FeedCredentials[];
const allVerifications = ["none", "OpenPGP", "provenance", "cosign", "keyless"] as const;

describe.each(feedKinds.map((kind) => [kind.name, kind] as const))("%s", (_name, kind) => {
  const stated = (credentials: FeedCredentials) => JSON.stringify(statements[credentials]);
  const works = new Set(kind.credentials.map(stated));

  test("a document with any other credentials or verification is refused, and the problem names the field", () => {
    const [upstreamKind = ""] = Object.keys(kind.example(place));
    const taken: string[] = [];
    let refused = 0;
    for (const policy of kind.policies) {
      for (const credentials of allCredentials) {
        for (const verification of allVerifications) {
          const { kind: signsIn, address } = statements[credentials];
          const verify = verifyOf(verification);
          const upstream = {
            ...kind.example(address)[upstreamKind],
            ...policy.members(upstreamKind === "git" ? "0".repeat(40) : `sha256:${"0".repeat(64)}`),
            ...(signsIn === undefined
              ? {}
              : { credentials: signsIn === "aws" ? { kind: "aws" } : { secret: "starling/git/a", kind: signsIn } }),
            ...(verify === undefined ? {} : { verify }),
          };
          if (works.has(stated(credentials)) && kind.verifications.includes(verification)) continue;
          const problems = problemsOf({ [upstreamKind]: upstream });
          const named = problems.filter(
            ({ field, message }) => /^spec\.\w+\.(credentials|verify)/.test(field) && message !== "",
          );
          if (named.length > 0) refused += 1;
          else taken.push(`${policy.name}, credentials ${credentials}, verification ${verification}`);
        }
      }
    }
    expect(taken).toEqual([]);
    expect(refused).toBeGreaterThan(0);
  });
});

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly enum?: readonly string[];
}

test("the combinations have every upstream, and every way to sign in, to follow and to verify, that a document can state", () => {
  const { properties: document = {} } = jsonSchemaOf("Source") as JsonSchema;
  const known = new Set([
    "secret",
    "kind",
    "host",
    "url",
    "chart",
    "bucket",
    "prefix",
    "sha256",
    "principals",
    "version",
  ]);
  const ofSpec = document.spec?.properties ?? {};
  const examples = feedKinds.flatMap((kind) => Object.entries(kind.example(place)));
  const stated = new Set(examples.map(([name]) => name));
  // An include joins other Sources, and patterns leave files out; both have tests of their own.
  const rules = new Set(["include", "ignore", "paths", "immutableTags", "retain", "interval"]);
  expect(
    Object.keys(ofSpec)
      .filter((name) => !rules.has(name))
      .sort(),
  ).toEqual([...stated].sort());
  for (const name of stated) {
    const kinds = feedKinds.filter((kind) => name in kind.example(place));
    const { credentials, ref, verify, ...rest } = ofSpec[name]?.properties ?? {};
    const signsIn = new Set(kinds.flatMap((kind) => kind.credentials.flatMap((each) => statements[each].kind ?? [])));
    expect(new Set(credentials?.properties?.kind?.enum ?? []), `${name}.credentials`).toEqual(signsIn);
    const followed = kinds.flatMap((kind) =>
      kind.policies.flatMap((policy) => Object.keys((policy.members("") as { ref?: object }).ref ?? {})),
    );
    expect(new Set(Object.keys(ref?.properties ?? {})), `${name}.ref`).toEqual(new Set(followed));
    const verified = kinds.flatMap((kind) => kind.verifications.flatMap((each) => Object.keys(verifyOf(each) ?? {})));
    expect(new Set(Object.keys(verify?.properties ?? {})), `${name}.verify`).toEqual(new Set(verified));
    expect(
      Object.keys(rest).filter((member) => !known.has(member)),
      name,
    ).toEqual(name === "oci" ? ["mediaType"] : name === "s3" ? ["region"] : []);
  }
});
