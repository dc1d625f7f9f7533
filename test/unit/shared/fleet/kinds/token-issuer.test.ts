import { expect, test } from "vitest";
import { issuerProblem, openClaims } from "#shared/fleet/kinds/token-issuer.ts";

const github = "https://token.actions.githubusercontent.com";

test.each([
  [github, { repository: "[^/]+/[^/]+" }],
  [github, { repository: ".*", ref: "refs/heads/main" }],
  [github, { sub: "repo:.*" }],
  [`${github}/`, { actor: "ana" }],
  [github, { repository: ".*/shop" }],
  [github, { repository: "acme.*" }],
  [github, { sub: "repo:[^:]+/shop:.*" }],
  [github, { repository_owner: "acme.+" }],
  ["https://gitlab.com", { project_path: "(acme|.+)/shop" }],
  ["https://gitlab.com", { ref_protected: "true" }],
  ["https://accounts.google.com", { email_verified: "true" }],
])("claims of %s with %j let strangers in [receiver.owner-claim]", (issuer, claims) => {
  expect(openClaims(issuer, claims)).toContain("gives tokens to everybody");
});

test.each([
  [github, { repository: "acme/.*" }],
  [github, { sub: "repo:acme/shop:.*" }],
  [github, { repository: "acme/(shop|web)-.*" }],
  [github, { job_workflow_ref: "acme/ci/.github/workflows/push.yml@.*" }],
  ["https://gitlab.com", { sub: "project_path:acme/.*:ref_type:branch:ref:main" }],
  ["https://accounts.google.com", { email: ".+@acme.example" }],
  ["https://gitlab.corp.example", { sub: "ci-.*" }],
  ["https://gitlab.com", { namespace_path: "acme(/.*)?" }],
  ["https://gitlab.corp.example", { ref_protected: "true" }],
])("claims of %s with %j name somebody", (issuer, claims) => {
  expect(openClaims(issuer, claims)).toBeUndefined();
});

test("a pattern that fits every user of a private issuer demands nothing", () => {
  expect(openClaims("https://gitlab.corp.example", { sub: ".+" })).toContain("fits any user of the issuer");
});

test.each([
  ["https://user@gitlab.example.com", "has a user"],
  ["https://gitlab.example.com?x=1", "has a user, a password or a query"],
  ["gitlab.example.com", "is not a URL"],
  ["http://gitlab.example.com", "unencrypted"],
])("the issuer %s is refused", (issuer, why) => {
  expect(issuerProblem(issuer)).toContain(why);
});
