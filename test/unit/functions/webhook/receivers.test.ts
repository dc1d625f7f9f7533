/** Deliveries to the URLs of Receivers: who is believed, and which Sources are polled. */
import { beforeEach, describe, expect, test } from "vitest";
import type { ProviderName } from "#shared/fleet/kinds/receiver.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { recorded, type SenderName, senders, signed } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

const url = "https://github.com/acme/fleet";
const token = `whsec_${Buffer.from("a key of thirty-two bytes, always").toString("base64")}`;
const suspended = { by: "me", at: "2026-01-01T00:00:00.000Z", number: 1 };

let world: WebhookWorld;
beforeEach(async () => {
  world = new WebhookWorld();
  await world.addSource("main", { url, ref: { branch: "main" } });
  await world.addSource("other", { url, ref: { branch: "main" } });
});

/** The answer to a delivery to a Receiver, with the names of the polled Sources. */
async function deliver(at: string, delivered: ReturnType<typeof recorded>) {
  const { woken, ...answer } = await world.deliver({ ...delivered, host: at });
  const names = polledNames(woken);
  return { ...answer, woken: names };
}

const push = (secret = "s3cret") => recorded("github", "push", secret);

describe("the sender of a Receiver", () => {
  test("only the listed Sources that the push can change are polled [receiver.sources]", async () => {
    await world.addSource("tags", { url, ref: { semver: ">=1" } });
    await world.addSource("elsewhere", { url: "https://github.com/acme/fleet2", ref: { branch: "main" } });
    const at = await world.addReceiver("app", { provider: "github", sources: ["main", "tags", "elsewhere", "none"] });
    expect(await deliver(at, push())).toMatchObject({ status: 202, woken: ["main"] });
    expect(await deliver(at, recorded("github", "tag"))).toMatchObject({ status: 202, woken: ["tags"] });
  });

  test("a selector takes the Sources of the Receiver's namespace that have the labels [receiver.namespace]", async () => {
    const at = await world.addReceiver("app", {
      provider: "github",
      sources: [{ selector: { matchLabels: { team: "web" } } }],
    });
    expect(await deliver(at, push())).toMatchObject({ status: 202, woken: [] });
    await world.label("other", { team: "web" });
    expect(await deliver(at, push())).toMatchObject({ status: 202, woken: ["other"] });
  });

  test("a Receiver of another namespace polls nothing of this one [receiver.namespace]", async () => {
    const at = await world.addReceiver("app", { provider: "github", namespace: "rogue" });
    expect(await deliver(at, push())).toMatchObject({ status: 202, woken: [] });
  });

  test("either of two secrets proves a sender, and each Receiver has its own [receiver.two-secrets]", async () => {
    world.tokens.two = '{"token":"second"}';
    const both = await world.addReceiver("both", { provider: "github", secrets: ["one", "two"] });
    const second = await world.addReceiver("second", { provider: "github", secrets: ["two"] });
    for (const secret of ["s3cret", "second"])
      expect(await deliver(both, push(secret))).toMatchObject({ status: 202, woken: ["main"] });
    expect(await deliver(second, push("second"))).toMatchObject({ status: 202 });
    expect(await deliver(second, push("s3cret"))).toMatchObject({ status: 401, woken: [] });
    // The secret of the installation proves nothing here.
    world.secret = '["third"]';
    expect(await deliver(both, push("third"))).toMatchObject({ status: 401, woken: [] });
  });

  test("while one of two secrets has no value, the other one counts, and any other sender comes again [receiver.two-secrets]", async () => {
    const at = await world.addReceiver("app", { provider: "github", secrets: ["one", "gone"] });
    expect(await deliver(at, push())).toMatchObject({ status: 202, woken: ["main"] });
    expect(await deliver(at, push("second"))).toMatchObject({ status: 503, woken: [] });
  });

  test.each(["", '""', "s3cret", "{}", '{"token":""}', '{"token":1}', '["s3cret"]', "null"])(
    "a secret with the value %j refuses every sender [receiver.empty-secret]",
    async (text) => {
      world.tokens.one = text;
      const at = await world.addReceiver("app", { provider: "github" });
      for (const secret of ["", "s3cret", "undefined", "1"]) {
        const refused = { status: 503, body: '{"message":"unavailable"}', woken: [] };
        expect(await deliver(at, push(secret))).toEqual(refused);
      }
      expect(world.lines.join()).not.toContain("s3cret");
    },
  );

  test("a secret that names namespaces is for Receivers of these alone [receiver.secret-namespaces]", async () => {
    world.tokens.one = '{"token":"s3cret","namespaces":["shop"]}';
    const own = await world.addReceiver("app", { provider: "github" });
    const foreign = await world.addReceiver("app", { provider: "github", namespace: "rogue" });
    expect(await deliver(own, push())).toMatchObject({ status: 202 });
    expect(await deliver(foreign, push())).toMatchObject({ status: 503, woken: [] });
    expect(world.lines.join()).toContain("is not for Receivers of the namespace rogue");
  });

  const repositories: Readonly<Record<SenderName, string>> = {
    github: url,
    gitlab: "https://gitlab.example.com/acme/fleet",
    gitlabSigned: "https://gitlab.example.com/acme/fleet",
    gitea: "https://gitea.example.com/acme/fleet",
    forgejo: "https://gitea.example.com/acme/fleet",
    bitbucket: "https://bitbucket.org/acme/fleet",
    bitbucketServer: "https://bitbucket.example.com/scm/acme/fleet",
    azureDevops: "https://dev.azure.com/acme/Web%20Shop/_git/fleet",
    generic: "https://git.example.com/acme/fleet",
  };
  test.each(Object.keys(senders) as readonly SenderName[])(
    "%s: a good proof counts; a bad, a missing and an empty one are refused without detail [receiver.proof]",
    async (name) => {
      const secret = name === "gitlabSigned" ? token : "s3cret";
      world.tokens.one = JSON.stringify({ token: secret });
      await world.addSource("main", { url: repositories[name], ref: { branch: "main" } });
      const at = await world.addReceiver("app", { provider: senders[name].host as ProviderName });
      const delivered = recorded(name, "push", secret);
      expect(await deliver(at, delivered)).toMatchObject({ status: 202, woken: ["main"] });
      expect(await deliver(at, { ...delivered, encoding: "base64" })).toMatchObject({ status: 202, woken: ["main"] });
      const refused = { status: 401, body: '{"message":"unauthorized"}', woken: [] };
      expect(await deliver(at, recorded(name, "push", "whsec_b3RoZXI="))).toEqual(refused);
      for (const header of Object.keys(senders[name].prove(secret, delivered.body))) {
        const { [header]: _taken, ...others } = delivered.headers as Readonly<Record<string, string>>;
        expect(await deliver(at, { ...delivered, headers: others })).toEqual(refused);
        expect(await deliver(at, { ...delivered, headers: { ...others, [header]: "" } })).toEqual(refused);
      }
    },
  );

  test("nothing in a request chooses another kind of sender [receiver.fixed-provider]", async () => {
    world.tokens.one = '{"token":"s3cret"}';
    const at = await world.addReceiver("app", { provider: "github" });
    const delivered = push();
    for (const headers of [
      { "x-gitlab-token": "s3cret", "x-gitlab-event": "Push Hook" },
      { authorization: `Basic ${Buffer.from("a:s3cret").toString("base64")}` },
      senders.generic.prove("s3cret", delivered.body),
    ])
      expect(await deliver(at, { ...delivered, headers })).toMatchObject({ status: 401, woken: [] });
  });
});

describe("the URL of a Receiver", () => {
  test("an unknown id, and anything that is none, is not found [receiver.url]", async () => {
    const at = await world.addReceiver("app", { provider: "github" });
    for (const id of ["0".repeat(40), "", "app", "shop", `${at.slice(2)}0`, at.slice(2, -1), "r", "../github"])
      expect(await deliver(`r/${id}`, push())).toEqual({ status: 404, body: '{"message":"not found"}', woken: [] });
  });

  test("a suspended Receiver refuses its senders until it is resumed, and polls no suspended Source [receiver.suspended]", async () => {
    const at = await world.addReceiver("app", { provider: "github", operations: { suspended } });
    expect(await deliver(at, push())).toEqual({ status: 503, body: '{"message":"suspended"}', woken: [] });
    const until = { suspended: { ...suspended, until: "2026-01-01T00:30:00.000Z" } };
    const over = await world.addReceiver("app", { provider: "github", operations: until });
    expect(await deliver(over, push())).toMatchObject({ status: 202, woken: ["main"] });
    await world.addSource("main", { url, ref: { branch: "main" }, operations: { suspended } });
    expect(await deliver(over, push())).toMatchObject({ status: 202, woken: [] });
  });

  test("a body of 3 MiB is read, and one byte more is refused before any row or secret is read [receiver.size]", async () => {
    const at = await world.addReceiver("app", { provider: "github" });
    const { headers, body } = push();
    const large = `${body}${" ".repeat(3 * 1024 * 1024 - Buffer.byteLength(body))}`;
    expect(await deliver(at, signed("github", { body: large }))).toMatchObject({ status: 202, woken: ["main"] });
    for (const encoding of [undefined, "base64"] as const) {
      const delivered = { host: "", headers, body: `${large} `, ...(encoding === undefined ? {} : { encoding }) };
      const unknown = await deliver(`r/${"0".repeat(40)}`, delivered);
      expect(unknown).toMatchObject({ status: 413, body: expect.stringContaining("3145728 bytes"), woken: [] });
    }
  });

  test("a ping is answered, and other events wake nothing [receiver.ping]", async () => {
    const at = await world.addReceiver("app", { provider: "github" });
    expect(await deliver(at, recorded("github", "ping"))).toMatchObject({ status: 200, woken: [] });
    const delivered = push();
    const headers = { ...delivered.headers, "x-github-event": "issues" };
    expect(await deliver(at, { ...delivered, headers })).toMatchObject({ status: 202, woken: [] });
  });

  test("only the events that a Receiver names are followed [receiver.events]", async () => {
    await world.addSource("main", { url: "https://gitlab.example.com/acme/fleet", ref: { branch: "main" } });
    const tags = await world.addReceiver("tags", { provider: "gitlab", events: ["Tag Push Hook"] });
    const pushes = await world.addReceiver("pushes", { provider: "gitlab", events: ["push hook"] });
    expect(await deliver(tags, recorded("gitlab", "push"))).toMatchObject({ status: 202, woken: [] });
    expect(await deliver(pushes, recorded("gitlab", "push"))).toMatchObject({ status: 202, woken: ["main"] });
  });

  test("a program's signed delivery without an address, or without a body, polls every listed Source [receiver.generic]", async () => {
    await world.addSourceOf("files", sourceSpec.parse({ archive: { url, sha256: "0".repeat(64) } }));
    const at = await world.addReceiver("app", { provider: "generic", sources: ["main", "files"] });
    for (const body of ["", "{}", '{"build":17}'])
      expect(await deliver(at, signed("generic", { body }))).toMatchObject({ status: 202, woken: ["files", "main"] });
    const narrow = signed("generic", { body: JSON.stringify({ url: "https://nowhere.example/x" }) });
    expect(await deliver(at, narrow)).toMatchObject({ status: 202, woken: [] });
    expect(await deliver(at, signed("generic", { body: "not JSON" }))).toMatchObject({ status: 400, woken: [] });
  });

  test("after a push of more than a thousand references, every listed Source at the address is polled", async () => {
    await world.addSource("tags", { url, ref: { semver: ">=1" } });
    await world.addSource("elsewhere", { url: "https://github.com/acme/other" });
    const at = await world.addReceiver("app", { provider: "generic", sources: ["main", "tags", "elsewhere"] });
    const pushed = (references: number) => {
      const refs = Array.from({ length: references }, (_, index) => `refs/heads/b${index}`);
      return deliver(at, signed("generic", { body: JSON.stringify({ url, refs }) }));
    };
    expect(await pushed(1000)).toMatchObject({ status: 202, woken: [] });
    expect(await pushed(1001)).toMatchObject({ status: 202, woken: ["main", "tags"] });
  });

  test("a replay costs the same polls again, and no commit of a body is used [receiver.hint]", async () => {
    const at = await world.addReceiver("app", { provider: "github" });
    const first = await deliver(at, push());
    expect(await deliver(at, push())).toEqual(first);
  });
});
