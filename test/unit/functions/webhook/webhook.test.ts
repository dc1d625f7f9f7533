import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import type { GitReference } from "#shared/source/git-ref-schema.ts";
import { type GitSource, WebhookWorld } from "#test/support/webhook-world.ts";

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/github/${name}.json`, import.meta.url), "utf8");
const pushBranch = fixture("push-branch");

let world: WebhookWorld;

beforeEach(() => {
  world = new WebhookWorld();
});

const addSource = (name: string, git: GitSource) => world.addSource(name, git);

interface Delivery {
  readonly body?: string;
  readonly event?: string;
  readonly signedWith?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly encoding?: "base64";
}

function deliver(delivery: Delivery = {}) {
  const body = delivery.body ?? pushBranch;
  const signature = createHmac("sha256", delivery.signedWith ?? "s3cret")
    .update(body)
    .digest("hex");
  return world.deliver({
    host: "github",
    headers: {
      "content-type": "application/json",
      "x-github-event": delivery.event ?? "push",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
      "x-hub-signature-256": `sha256=${signature}`,
      ...delivery.headers,
    },
    body,
    ...defined({ encoding: delivery.encoding }),
  });
}

const woken = (...names: string[]) => names.map((name) => ({ to: "resolve", source: { namespace: "shop", name } }));

describe("a push to the webhook", () => {
  test("a push wakes the Sources of its repository, however they spell its URL [receiver.address]", async () => {
    await addSource("plain", {});
    await addSource("spelled", { url: "https://GitHub.com:443/Acme/Fleet.git" });
    await addSource("other", { url: "https://github.com/acme/fleet2" });
    await addSource("pattern", { url: "https://github.com/acme/.leet" });
    expect(await deliver()).toMatchObject({ status: 202, woken: expect.arrayContaining(woken("plain", "spelled")) });
    expect((await deliver()).woken).toHaveLength(2);
  });

  const refs: readonly (readonly [ref: GitReference | undefined, event: string, wakes: boolean])[] = [
    [undefined, "push-branch", true],
    [undefined, "push-deleted", false],
    [undefined, "push-tag", false],
    [{ branch: "main" }, "push-branch", true],
    [{ branch: "old" }, "push-deleted", true],
    [{ branch: "old" }, "push-branch", false],
    [{ branch: "main" }, "push-tag", false],
    [{ tag: "v1.2.0" }, "push-tag", true],
    [{ tag: "v1.2" }, "push-tag", false],
    [{ semver: ">=1" }, "push-tag", true],
    [{ semver: ">=1" }, "push-branch", false],
    [{ semver: ">=1", tagPrefix: "v" }, "push-tag", true],
    [{ semver: ">=1", tagPrefix: "app/" }, "push-tag", false],
    [{ commit: "a".repeat(40) }, "push-branch", true],
  ];
  test.each(refs)(
    "a Source with ref %j and a push of %s: woken is %s [receiver.sources]",
    async (ref, event, wakes) => {
      await addSource("one", ref === undefined ? {} : { ref });
      expect((await deliver({ body: fixture(event) })).woken).toEqual(wakes ? woken("one") : []);
    },
  );

  test("a push does not wake a suspended Source [receiver.suspended]", async () => {
    await addSource("one", { operations: { suspended: { by: "me", at: "2026-01-01T00:00:00.000Z", number: 1 } } });
    expect(await deliver()).toMatchObject({ status: 202, woken: [] });
  });

  test.each([
    ["2026-01-01T01:00:00.000Z", woken("one")],
    ["2026-01-01T01:00:01.000Z", []],
  ])("a push wakes a Source whose suspension has ended by itself, but not before: %s", async (until, wakes) => {
    const suspended = { by: "me", at: "2026-01-01T00:00:00.000Z", number: 1, until };
    await addSource("one", { operations: { suspended } });
    expect((await deliver()).woken).toEqual(wakes);
  });

  test("a push may be encoded in base64, or sent as a form [receiver.raw-body]", async () => {
    await addSource("one", {});
    expect(await deliver({ encoding: "base64" })).toMatchObject({ status: 202, woken: woken("one") });
    const form = {
      body: `payload=${encodeURIComponent(pushBranch)}`,
      headers: { "content-type": "application/x-www-form-urlencoded" },
    };
    expect(await deliver(form)).toMatchObject({ status: 202, woken: woken("one") });
  });

  test("a push is only a hint: its commit is not used, and a repeated push has the same effect [receiver.hint]", async () => {
    await addSource("one", {});
    const first = await deliver();
    expect(JSON.stringify(first.woken)).not.toContain("6113728f");
    expect(await deliver()).toEqual(first);
  });

  test("a body that is no push is refused", async () => {
    for (const body of ["", "{}", "[]", "null", '{"ref": 1}', '{"ref":"refs/heads/main"}', "payload=1"]) {
      expect(await deliver({ body })).toMatchObject({ status: 400, woken: [] });
    }
  });

  test("a push with a URL that has a special meaning in patterns or parsers matches no Source", async () => {
    await addSource("one", {});
    for (const url of [".*", "https://github.com/.*", "https://[", "__proto__", "a#b"]) {
      const body = JSON.stringify({ ref: "refs/heads/main", repository: { clone_url: url } });
      expect(await deliver({ body })).toMatchObject({ status: 202, woken: [] });
    }
  });
});

describe("the signature of the webhook's sender", () => {
  test("a sender is verified with either of two secrets", async () => {
    world.secret = '["old", "new"]';
    await addSource("one", {});
    expect(await deliver({ signedWith: "old" })).toMatchObject({ status: 202 });
    expect(await deliver({ signedWith: "new" })).toMatchObject({ status: 202 });
    expect(await deliver({ signedWith: "other" })).toMatchObject({ status: 401 });
  });

  const signatures: readonly (readonly [legend: string, headers: Readonly<Record<string, string>>])[] = [
    ["nothing", { "x-hub-signature-256": "" }],
    ["an empty text", { "x-hub-signature-256": "sha256=" }],
    ["a short text", { "x-hub-signature-256": "sha256=00" }],
    ["a signature of another kind", { "x-hub-signature-256": `sha1=${"0".repeat(40)}` }],
    ["a wrong signature", { "x-hub-signature-256": `sha256=${"0".repeat(64)}` }],
    [
      "only a SHA-1",
      {
        "x-hub-signature-256": "",
        "x-hub-signature": `sha1=${createHmac("sha1", "s3cret").update(pushBranch).digest("hex")}`,
      },
    ],
  ];
  test.each(signatures)("a sender with %s for a signature is refused without detail", async (_legend, headers) => {
    await addSource("one", {});
    const answer = await deliver({ headers });
    expect(answer).toEqual({ status: 401, body: '{"message":"unauthorized"}', woken: [] });
  });

  test("a sender that changed the body after signing is refused", async () => {
    const signature = createHmac("sha256", "s3cret").update(pushBranch).digest("hex");
    const headers = { "x-hub-signature-256": `sha256=${signature}` };
    expect(await deliver({ body: `${pushBranch} `, headers })).toMatchObject({ status: 401 });
  });

  test.each(['[""]', "[]", '""', "s3cret", '["a","b","c"]', "[1]", ""])(
    "a sender is refused while the secret is %s, even when it signs with an empty key",
    async (text) => {
      world.secret = text;
      await addSource("one", {});
      expect(await deliver({ signedWith: "" })).toEqual({ status: 503, body: '{"message":"unavailable"}', woken: [] });
      expect(world.lines.join()).toContain("webhook failed");
    },
  );

  test("no secret, body or signature appears in the log", async () => {
    await addSource("one", {});
    await deliver();
    await deliver({ signedWith: "wrong" });
    world.secret = '{"s3cret": 1}';
    await deliver();
    expect(world.lines.join()).not.toMatch(/s3cret|sha256|Raise replicas/);
  });
});

describe("other events at the webhook", () => {
  test("a ping is answered", async () => {
    expect(await deliver({ body: fixture("ping"), event: "ping" })).toMatchObject({ status: 200, woken: [] });
  });

  test("a ping with a wrong signature is refused", async () => {
    expect(await deliver({ body: fixture("ping"), event: "ping", signedWith: "x" })).toMatchObject({ status: 401 });
  });

  test("other events are accepted and wake nothing", async () => {
    await addSource("one", {});
    expect(await deliver({ event: "issues" })).toMatchObject({ status: 202, woken: [] });
  });

  test("a body that is too large is refused before it is read", async () => {
    const body = JSON.stringify({ x: "x".repeat(3 * 1024 * 1024) });
    expect(await deliver({ body, signedWith: "wrong" })).toMatchObject({ status: 413, woken: [] });
  });

  test("an event of another shape is not accepted", async () => {
    expect(await world.handle({ body: 1 })).toMatchObject({ statusCode: 503 });
    expect(await world.handle({ rawPath: "/hook/github" })).toMatchObject({ statusCode: 401 });
    expect(await world.handle({})).toMatchObject({ statusCode: 404 });
  });
});
