/** Every kind of upstream with every policy, every way to sign in and every verification that it has. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { cosignKeyPair } from "#local/registry/cosign-keys.ts";
import { pgpKey } from "#test/support/pgp-keys.ts";
import { conditionsOf } from "#test/support/signed-sources.ts";
import {
  type Feed,
  type FeedCredentials,
  type FeedKeys,
  type FeedKind,
  type FeedPolicy,
  type FeedVerification,
  feedKinds,
} from "#test/support/source-feeds.ts";
import { SourceWorld } from "#test/support/source-world.ts";

let bot: FeedKeys;
let stranger: FeedKeys;
let feed: Feed | undefined;

beforeAll(async () => {
  bot = { pgp: await pgpKey(), cosign: cosignKeyPair() };
  stranger = { pgp: await pgpKey(), cosign: cosignKeyPair() };
});
afterEach(async () => {
  await feed?.stop();
  feed = undefined;
});

interface Combination {
  readonly kind: FeedKind;
  readonly policy: FeedPolicy;
  readonly credentials: FeedCredentials;
  readonly verification: FeedVerification;
}

const combinations = feedKinds.flatMap((kind) =>
  kind.policies.flatMap((policy) =>
    kind.credentials.flatMap((credentials) =>
      kind.verifications.map((verification) => ({
        title: `${kind.name}, ${policy.name}, credentials ${credentials}, verification ${verification}`,
        kind,
        policy,
        credentials,
        verification,
      })),
    ),
  ),
);

const secret = "starling/git/feed";

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
  }
}

function specOf({ kind, upstream }: Feed, { policy, credentials, verification }: Combination): object {
  const verify = verifyOf(verification);
  return {
    [kind]: {
      ...upstream,
      ...policy.members,
      ...(credentials === "none"
        ? {}
        : { credentials: { secret, kind: credentials === "token" ? "basic" : credentials } }),
      ...(verify === undefined ? {} : { verify }),
    },
  };
}

describe.each(combinations)("$title", (combination) => {
  const { kind, policy, credentials, verification } = combination;
  const key = () => (verification === "none" ? undefined : bot);

  test("the published content is stored, and nothing else", async () => {
    const world = new SourceWorld();
    world.now = new Date();
    feed = await kind.start({ credentials, verification, world });
    await feed.publish("1.0.0", "first", key());

    // Without the right secret nothing is stored, and no content is sent.
    await world.put(specOf(feed, combination));
    if (credentials !== "none") {
      world.secrets.set(secret, JSON.stringify(feed.secrets.wrong));
      const refused = await world.resolve();
      expect(conditionsOf(refused).Ready).toMatchObject({
        status: "False",
        reason: expect.stringMatching(/AuthenticationFailed$/),
      });
      expect(refused.status.artifact).toBeUndefined();
      expect(feed.contentRequests()).toBe(0);
      expect(JSON.stringify(refused)).not.toContain("not-this-one");
      world.secrets.set(secret, JSON.stringify(feed.secrets.right));
    }

    const first = await world.resolve();
    expect(conditionsOf(first).Ready).toMatchObject({ status: "True" });
    expect(await feed.stored()).toBe("first");

    // An untrusted version is not fetched, and the last good artifact stays.
    if (verification !== "none") {
      const before = feed.contentRequests();
      for (const [version, by] of [
        ["1.1.0", undefined],
        ["1.2.0", stranger],
      ] as const) {
        await feed.publish(version, `untrusted ${version}`, by);
        const { status } = await world.resolve();
        expect(status.artifact).toEqual(first.status.artifact);
        const reason = by === undefined ? /^(SignatureMissing|ProvenanceMissing)$/ : /^SignatureKeyUnknown$/;
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
