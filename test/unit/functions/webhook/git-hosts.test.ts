import { createHmac } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { gitHosts } from "#functions/webhook/providers/git-hosts.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { recorded, type SenderName, senders, signed } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

const repositories: Readonly<Record<SenderName, string>> = {
  github: "https://github.com/Acme/Fleet.git",
  gitlab: "https://gitlab.example.com/Acme/Fleet.git",
  gitlabSigned: "https://gitlab.example.com/acme/fleet",
  gitea: "https://gitea.example.com/acme/fleet.git",
  forgejo: "https://gitea.example.com/acme/fleet",
  bitbucket: "https://bitbucket.org/Acme/fleet.git",
  bitbucketServer: "https://bitbucket.example.com/scm/ACME/fleet.git",
  azureDevops: "https://dev.azure.com/acme/Web%20Shop/_git/Fleet",
  generic: "https://git.example.com/acme/fleet.git",
};
const names = Object.keys(senders) as readonly SenderName[];
const token = `whsec_${Buffer.from("a key of thirty-two bytes, always").toString("base64")}`;
const secretOf = (name: SenderName) => (name === "gitlabSigned" ? token : "s3cret");

let world: WebhookWorld;

/** Sources that follow a branch that others follow too, a deleted branch, and tags. */
async function follow(name: SenderName): Promise<void> {
  const url = repositories[name];
  await world.addSource("main", { url, ref: { branch: "main" } });
  await world.addSource("old", { url, ref: { branch: "old" } });
  await world.addSource("tags", { url, ref: { semver: ">=1", tagPrefix: "v" } });
  await world.addSource("other", { url: `${url.replace(/\.git$/, "")}-2`, ref: { branch: "main" } });
}

async function wokenBy(delivered: ReturnType<typeof recorded>): Promise<readonly string[]> {
  const { status, woken } = await world.deliver(delivered);
  expect(status).toBe(202);
  return polledNames(woken);
}

beforeEach(() => {
  world = new WebhookWorld();
  world.secret = JSON.stringify(["s3cret", token]);
});

describe("a recorded delivery of each kind of sender", () => {
  const events: readonly (readonly [name: SenderName, event: string, wakes: readonly string[]])[] = [
    ["github", "push", ["main"]],
    ["github", "deleted", ["old"]],
    ["github", "tag", ["tags"]],
    ["gitlab", "push", ["main"]],
    ["gitlab", "deleted", ["old"]],
    ["gitlab", "tag", ["tags"]],
    ["gitlab", "system", ["main", "tags"]],
    ["gitlabSigned", "push", ["main"]],
    ["gitea", "push", ["main"]],
    ["gitea", "tag", ["tags"]],
    ["gitea", "create", ["tags"]],
    ["gitea", "delete", ["old"]],
    ["forgejo", "push", ["main"]],
    ["bitbucket", "push", ["main"]],
    ["bitbucket", "deleted", ["old"]],
    ["bitbucket", "tag", ["tags"]],
    ["bitbucket", "many", ["main", "old", "tags"]],
    ["bitbucketServer", "push", ["main"]],
    ["bitbucketServer", "deleted", ["old"]],
    ["bitbucketServer", "tag", ["tags"]],
    ["bitbucketServer", "many", ["main", "old", "tags"]],
    ["azureDevops", "push", ["main"]],
    ["azureDevops", "deleted", ["old"]],
    ["azureDevops", "tag", ["tags"]],
    ["azureDevops", "many", ["main", "old", "tags"]],
    ["generic", "push", ["main"]],
    ["generic", "deleted", ["old"]],
    ["generic", "tag", ["tags"]],
    ["generic", "many", ["main", "old", "tags"]],
    ["generic", "any", ["main", "old", "tags"]],
  ];
  test.each(events)("%s, %s: it wakes %j [receiver.forges]", async (name, event, wakes) => {
    await follow(name);
    const delivered = recorded(name, event, secretOf(name));
    expect(await wokenBy(delivered)).toEqual(wakes);
    expect(await wokenBy({ ...delivered, encoding: "base64" })).toEqual(wakes);
  });

  test("every URL has a recorded delivery", () => {
    expect([...gitHosts.keys()].toSorted()).toEqual(
      [...new Set(events.map(([name]) => senders[name].host))].toSorted(),
    );
  });

  test.each(names)(
    "%s: with a wrong, a missing or an empty proof it is refused without detail [receiver.proof]",
    async (name) => {
      await follow(name);
      const refused = { status: 401, body: '{"message":"unauthorized"}', woken: [] };
      const { body, host, headers } = recorded(name, "push", secretOf(name));
      const proof = Object.keys(senders[name].prove(secretOf(name), body));
      expect(await world.deliver(recorded(name, "push", "whsec_b3RoZXI="))).toEqual(refused);
      for (const header of proof) {
        const { [header]: _taken, ...others } = headers;
        expect(await world.deliver({ host, body, headers: others })).toEqual(refused);
        for (const value of [
          "",
          "sha256=",
          "sha1=",
          "Basic",
          "Basic Og==",
          "v1,",
          "0".repeat(64),
          `sha256=${"0".repeat(64)}`,
        ])
          expect(await world.deliver({ host, body, headers: { ...headers, [header]: value } })).toEqual(refused);
      }
    },
  );

  test.each(names)(
    "%s: an empty, missing or malformed secret refuses every sender [receiver.empty-secret]",
    async (name) => {
      await follow(name);
      for (const secret of ["", "[]", '[""]', "{}", '{"gitlab":[""]}', '{"nowhere":["s3cret"]}', "null"]) {
        world.secret = secret;
        for (const proof of ["", "whsec_", "s3cret"])
          expect(await world.deliver(recorded(name, "push", proof))).toMatchObject({ status: 503, woken: [] });
      }
    },
  );

  test.each(names)("%s: either of two secrets is enough", async (name) => {
    await follow(name);
    const former = name === "gitlabSigned" ? "whsec_Zm9ybWVy" : "former";
    world.secret = JSON.stringify([secretOf(name), former]);
    expect(await wokenBy(recorded(name, "push", former))).toEqual(["main"]);
    expect(await wokenBy(recorded(name, "push", secretOf(name)))).toEqual(["main"]);
  });

  test.each(names)("%s: with secrets by host, those of another host do not count", async (name) => {
    await follow(name);
    const { host } = senders[name];
    world.secret = JSON.stringify({ [host]: [secretOf(name)] });
    expect(await wokenBy(recorded(name, "push", secretOf(name)))).toEqual(["main"]);
    world.secret = JSON.stringify({ [host === "github" ? "gitlab" : "github"]: [secretOf(name)] });
    expect(await world.deliver(recorded(name, "push", secretOf(name)))).toMatchObject({ status: 401, woken: [] });
  });

  test.each(names.filter((name) => name !== "gitlab" && name !== "azureDevops"))(
    "%s: a body that was changed after signing is refused [receiver.raw-body]",
    async (name) => {
      await follow(name);
      const delivered = recorded(name, "push", secretOf(name));
      expect(await world.deliver({ ...delivered, body: `${delivered.body} ` })).toMatchObject({ status: 401 });
    },
  );

  test.each(names)(
    "%s: a body that is no push is refused after its sender is verified [receiver.body]",
    async (name) => {
      for (const body of ["", "{", "[]", "null", "1", '{"ref":1}', '{"ping":1}', '{"eventType":"git.push"}']) {
        const secret = secretOf(name);
        expect(await world.deliver(signed(name, { body, secret }))).toMatchObject({ status: 400, woken: [] });
      }
    },
  );

  test.each(names)(
    "%s: no commit, secret or proof of a delivery is passed on or logged [receiver.hint]",
    async (name) => {
      await follow(name);
      const delivered = recorded(name, "push", secretOf(name));
      const { woken } = await world.deliver(delivered);
      const passedOn = `${JSON.stringify(woken)}${world.lines.join()}`;
      expect(passedOn).toContain("push received");
      expect(passedOn).not.toMatch(/6113728f|5d3f1f4a|s3cret|whsec_|sha256|Basic/);
    },
  );
});

describe("a SHA-1", () => {
  const sha1 = (body: string) => `sha1=${createHmac("sha1", "s3cret").update(body).digest("hex")}`;
  test.each(["github", "gitea", "bitbucket", "bitbucketServer", "generic"] as const)(
    "%s: it alone is refused [receiver.sha1]",
    async (name) => {
      await follow(name);
      const { headers: _signed, ...delivered } = recorded(name, "push");
      const proof = Object.fromEntries(
        ["x-hub-signature", "x-hub-signature-256", "x-signature", "x-gitea-signature"].map((header) => [
          header,
          sha1(delivered.body),
        ]),
      );
      const headers = { ...senders[name].event("push"), ...proof };
      expect(await world.deliver({ ...delivered, headers })).toMatchObject({ status: 401, woken: [] });
    },
  );
});

test("a generic sender may be curl, which calls every body a form [receiver.generic]", async () => {
  await follow("generic");
  const { host, body } = recorded("generic", "push");
  const signature = createHmac("sha256", "s3cret").update(body).digest("hex");
  const headers = { "x-signature": `sha256=${signature}`, "content-type": "application/x-www-form-urlencoded" };
  expect(await wokenBy({ host, body, headers })).toEqual(["main"]);
});

test("a generic sender may sign with SHA-512", async () => {
  await follow("generic");
  const { host, body } = recorded("generic", "push");
  const digest = createHmac("sha512", "s3cret").update(body).digest("hex");
  expect(await wokenBy({ host, body, headers: { "x-signature": `sha512=${digest}` } })).toEqual(["main"]);
  const short = { host, body, headers: { "x-signature": `sha512=${digest.slice(64)}` } };
  expect(await world.deliver(short)).toMatchObject({ status: 401 });
});

test("a GitLab signing token that is sent as a secret token is refused", async () => {
  await follow("gitlab");
  expect(await world.deliver(recorded("gitlab", "push", token))).toMatchObject({ status: 401 });
});

test.each(["whsec_", "whsec_!"])("the signing token %s has no key, so that it proves nothing", async (empty) => {
  await follow("gitlab");
  world.secret = JSON.stringify([empty]);
  expect(await world.deliver(recorded("gitlabSigned", "push", empty))).toMatchObject({ status: 401, woken: [] });
});

test("a GitLab delivery may have several signatures", async () => {
  await follow("gitlab");
  const delivered = recorded("gitlabSigned", "push", token);
  const { "webhook-signature": proof = "" } = delivered.headers;
  const headers = { ...delivered.headers, "webhook-signature": `v1,b2xk v1a,${"a".repeat(44)} ${proof}` };
  expect(await wokenBy({ ...delivered, headers })).toEqual(["main"]);
});

test("a Gitea delivery that has only GitHub's header is verified by it", async () => {
  await follow("gitea");
  const { headers, ...delivered } = recorded("gitea", "push");
  const { "x-gitea-signature": hex = "", ...others } = headers;
  expect(await wokenBy({ ...delivered, headers: { ...others, "x-hub-signature-256": `sha256=${hex}` } })).toEqual([
    "main",
  ]);
});

describe("test events", () => {
  test.each(["github", "bitbucketServer", "generic"] as const)(
    "%s: a signed test is answered with 200",
    async (name) => {
      expect(await world.deliver(recorded(name, "ping"))).toMatchObject({
        status: 200,
        body: '{"message":"pong"}',
        woken: [],
      });
    },
  );

  test("a test of Bitbucket Data Center is never signed, and its answer says so", async () => {
    const { host, body } = recorded("bitbucketServer", "ping");
    const headers = { "x-event-key": "diagnostics:ping" };
    const answer = await world.deliver({ host, body, headers });
    expect(answer).toMatchObject({ status: 200, body: expect.stringContaining("the secret is not tested"), woken: [] });
    world.secret = '{"github":["s3cret"]}';
    expect(await world.deliver({ host, body, headers })).toMatchObject({ status: 401 });
  });

  test.each(["github", "generic"] as const)("%s: a test with a wrong signature is refused", async (name) => {
    expect(await world.deliver(recorded(name, "ping", "other"))).toMatchObject({ status: 401 });
  });
});

describe("other events", () => {
  const others: readonly (readonly [SenderName, Readonly<Record<string, string>>])[] = [
    ["github", { "x-github-event": "issues" }],
    ["gitlab", { "x-gitlab-event": "Issue Hook" }],
    ["gitea", { "x-gitea-event": "issues" }],
    ["bitbucket", { "x-event-key": "issue:created" }],
    ["bitbucketServer", { "x-event-key": "pr:opened" }],
  ];
  test.each(others)("%s: an event %j wakes nothing", async (name, event) => {
    await follow(name);
    const delivered = recorded(name, "push");
    const headers = { ...delivered.headers, ...event };
    expect(await world.deliver({ ...delivered, headers })).toMatchObject({
      status: 202,
      body: '{"message":"only push events are followed"}',
      woken: [],
    });
  });

  test("an event of Azure DevOps is known by its body, and a system event of GitLab too", async () => {
    await follow("azureDevops");
    expect(await wokenBy(recorded("azureDevops", "other"))).toEqual([]);
    expect(
      await wokenBy({
        ...recorded("gitlab", "system-other"),
        headers: signed("gitlab", { event: "system", body: "" }).headers,
      }),
    ).toEqual([]);
  });
});

describe("addresses in bodies", () => {
  const changed = (name: SenderName, replaced: readonly (readonly [string, string])[]) => {
    const { body } = recorded(name, "push");
    return signed(name, { body: replaced.reduce((text, [from, to]) => text.replaceAll(from, to), body) });
  };

  test("an SSH address matches a Source with the https address [receiver.address]", async () => {
    await world.addSource("github", { url: repositories.github });
    await world.addSource("gitlab", { url: repositories.gitlab });
    const onlySsh: readonly (readonly [string, string])[] = [
      ["https://", "nothing:"],
      ["git://", "nothing:"],
    ];
    expect(await wokenBy(changed("github", onlySsh))).toEqual(["github"]);
    expect(await wokenBy(changed("gitlab", onlySsh))).toEqual(["gitlab"]);
  });

  test.each([
    "https://acme.visualstudio.com/Web%20Shop/_git/Fleet",
    "https://acme.visualstudio.com/DefaultCollection/Web%20Shop/_git/Fleet",
    "https://acme@dev.azure.com/acme/Web%20Shop/_git/Fleet",
  ])("both hosts of an organization at Azure DevOps are one: %s", async (url) => {
    await world.addSource("dev", { url: repositories.azureDevops });
    await world.addSource("former", { url: "https://acme.visualstudio.com/Web%20Shop/_git/Fleet" });
    const named = "https://acme@dev.azure.com/acme/Web%20Shop/_git/Fleet";
    expect(await wokenBy(changed("azureDevops", [[named, url]]))).toEqual(["dev", "former"]);
  });

  test("a change without references wakes Sources of every kind at the address", async () => {
    const oci = { url: "oci://registry.example.com/acme/fleet" };
    await world.addSourceOf("oci", sourceSpec.parse({ oci }));
    const body = (refs: object) => JSON.stringify({ url: "https://registry.example.com/acme/fleet", ...refs });
    expect(await wokenBy(signed("generic", { body: body({}) }))).toEqual(["oci"]);
    expect(await wokenBy(signed("generic", { body: body({ refs: ["refs/tags/v1"] }) }))).toEqual([]);
  });
});

test("a URL of no git host is not found, before the secret is read", async () => {
  world.secret = "";
  for (const host of ["", "githu", "GitHub", "constructor", "__proto__", "github/"]) {
    expect(await world.deliver({ ...recorded("github", "push"), host })).toMatchObject({
      status: 404,
      body: expect.stringContaining("must be one of github, gitlab,"),
      woken: [],
    });
  }
});
