import { expect, test } from "vitest";
import { issuerProblem, openClaims } from "#shared/fleet/kinds/token-issuer.ts";

const github = "https://token.actions.githubusercontent.com";

const gitlab = "https://gitlab.com";

test.each([
  [github, { repository: "[^/]+/[^/]+" }, "repository"],
  [github, { repository: ".*/shop" }, "repository"],
  [github, { repository: "(acme|.*)/shop" }, "repository"],
  [github, { repository: ".*", ref: "refs/heads/main" }, "repository"],
  [github, { repository_owner: "acme.*" }, "repository_owner"],
  [github, { repository_owner_id: "\\d+" }, "repository_owner_id"],
  [github, { sub: "repo:.*" }, "sub"],
  [github, { sub: "repo:acme.*" }, "sub"],
  [github, { sub: "environment:acme/.*" }, "sub"],
  [`${github}/`, { workflow_ref: ".*/shop/.github/workflows/x.yaml@.*" }, "workflow_ref"],
  [gitlab, { project_path: ".*/shop" }, "project_path"],
  [gitlab, { namespace_path: "acme.*" }, "namespace_path"],
  [gitlab, { ci_config_ref_uri: "gitlab.com/.*" }, "ci_config_ref_uri"],
  [gitlab, { sub: "project_path:.*/shop:.*" }, "sub"],
  [gitlab, { user_email: ".*@acme.example" }, "user_email"],
  ["https://agent.buildkite.com", { organization_slug: ".*" }, "organization_slug"],
  ["https://app.terraform.io", { sub: "organization:.*:project:acme" }, "sub"],
  ["https://accounts.google.com", { email: ".*@gmail.com" }, "email"],
])("claims of %s with %j let strangers in [receiver.owner-claim]", (issuer, claims, claim) => {
  const { [claim as keyof typeof claims]: pattern } = claims;
  expect(openClaims(issuer, claims)).toEqual({
    field: `spec.oidc.claims.${claim}`,
    message: expect.stringMatching(
      /^fits owners that it does not name, and https.* gives tokens to everybody; write its owner letter by letter, such as /,
    ),
  });
  expect(openClaims(issuer, claims)?.message).toContain(`(got ${JSON.stringify(pattern)})`);
});

test.each([
  [github, { actor: "ana" }],
  // Anybody may call a public workflow of acme.
  [github, { job_workflow_ref: "acme/shop/.github/workflows/deploy.yaml@refs/heads/main" }],
  [gitlab, { ref_protected: "true" }],
  ["https://accounts.google.com", { email_verified: "true" }],
])("claims of %s with %j name nobody", (issuer, claims) => {
  expect(openClaims(issuer, claims)).toEqual({
    field: "spec.oidc.claims",
    message: expect.stringMatching(/^names nobody, and https.* gives tokens to everybody; add one of .*, such as /),
  });
});

test.each([
  [github, { repository: "acme/.*" }],
  [github, { repository: "(acme|corp)/.*" }],
  [github, { repository: ".*/shop", repository_owner: "acme" }],
  [github, { sub: "repo:acme/shop:.*" }],
  [github, { sub: "repository_owner:acme:.*" }],
  [github, { repository_id: "1234|5678" }],
  [gitlab, { namespace_path: "acme(/.*)?" }],
  [gitlab, { ci_config_ref_uri: "gitlab\\.com/acme/.*" }],
  [gitlab, { sub: "project_path:acme/shop:.*" }],
  ["https://agent.buildkite.com", { sub: "organization:acme:pipeline:.*" }],
  ["https://accounts.google.com", { email: "ci@acme\\.iam\\.gserviceaccount\\.com" }],
  ["https://gitlab.corp.example", { ref_protected: "true" }],
  ["constructor", { sub: "ana" }],
])("claims of %s with %j name somebody", (issuer, claims) => {
  expect(openClaims(issuer, claims)).toBeUndefined();
});

test("an example in a message is accepted", () => {
  for (const issuer of [
    github,
    gitlab,
    "https://agent.buildkite.com",
    "https://app.terraform.io",
    "https://accounts.google.com",
  ]) {
    const all = openClaims(issuer, {})?.message ?? "";
    const claims = /add one of (.*), such as/.exec(all)?.[1]?.split(", ") ?? [];
    expect(claims.length).toBeGreaterThan(1);
    for (const claim of claims) {
      const [, example = ""] = /such as (\S+) \(got/.exec(openClaims(issuer, { [claim]: ".*" })?.message ?? "") ?? [];
      expect(openClaims(issuer, { [claim]: example }), `${claim}: ${example}`).toBeUndefined();
    }
  }
});

test("a pattern that fits every user of a private issuer demands nothing", () => {
  expect(openClaims("https://gitlab.corp.example", { sub: ".+" })?.message).toContain("fits any user of the issuer");
});

test.each([
  ["https://user@gitlab.example.com", "has a user"],
  ["https://gitlab.example.com?x=1", "has a user, a password or a query"],
  ["gitlab.example.com", "is not a URL"],
  ["http://gitlab.example.com", "unencrypted"],
])("the issuer %s is refused", (issuer, why) => {
  expect(issuerProblem(issuer)).toContain(why);
});
