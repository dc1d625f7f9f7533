/** Issuers of tokens, and what tells their users apart. */
import { excerptOf } from "#shared/base/excerpt.ts";
import type { FieldProblem } from "#shared/fleet/kinds/document.ts";
import { checkHttpUrl } from "#shared/source/http-url.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";
import { type NamedBeginning, namesBeginning } from "#shared/source/names-beginning.ts";

/** A claim that says who has a token, and what of it is nobody else's. */
interface Identity extends NamedBeginning {
  readonly claim: string;
  /** For messages. */
  readonly example: string;
}

/** Everything below an owner, such as a repository, is the owner's. */
function ownedBy(...claims: readonly string[]): readonly Identity[] {
  return claims.map((claim) => ({ claim, keys: [""], ends: "/", example: "acme/.*" }));
}

function whole(example: string, ...claims: readonly string[]): readonly Identity[] {
  return claims.map((claim) => ({ claim, keys: [""], ends: "", example }));
}

function subOf(...keys: readonly string[]): Identity {
  return { claim: "sub", keys, ends: "/:", example: `${keys[0]}acme${keys[0] === "organization:" ? ":" : "/"}.*` };
}

/**
 * Issuers that give tokens to everybody. A claim is left out if strangers can have one of yours: the workflow of
 * `job_workflow_ref` can be called by anybody when its repository is public.
 */
const publicIssuers = new Map<string, readonly Identity[]>(
  Object.entries({
    "https://token.actions.githubusercontent.com": [
      ...ownedBy("repository"),
      ...whole("acme", "repository_owner", "enterprise"),
      // An owner chooses the claims that sub consists of, and a stranger would choose one that takes any text.
      subOf(
        ...["repo", "repository", "repository_id", "repository_owner", "repository_owner_id"].map((key) => `${key}:`),
        ...["enterprise", "enterprise_id"].map((key) => `${key}:`),
      ),
      ...ownedBy("workflow_ref"),
      ...whole("123456", "repository_id", "repository_owner_id", "enterprise_id"),
    ],
    "https://gitlab.com": [
      ...ownedBy("project_path", "namespace_path"),
      subOf("project_path:"),
      { claim: "ci_config_ref_uri", keys: ["gitlab.com/"], ends: "/", example: "gitlab\\.com/acme/.*" },
      ...whole("123456", "project_id", "namespace_id", "user_id"),
      ...whole("ana", "user_login"),
      ...whole("ana@acme\\.example", "user_email"),
    ],
    "https://agent.buildkite.com": [...whole("acme", "organization_slug"), subOf("organization:")],
    "https://app.terraform.io": [...whole("acme", "terraform_organization_name"), subOf("organization:")],
    "https://accounts.google.com": [
      ...whole("ci@acme\\.iam\\.gserviceaccount\\.com", "email"),
      ...whole("acme\\.example", "hd"),
      ...whole("123456", "sub", "azp"),
    ],
  }),
);

/** Texts that users of a private issuer have in their claims. A pattern that fits one of them demands nothing. */
const anyUser = [
  "nobody",
  "9",
  "nobody/nothing",
  "nobody@nothing.example",
  ...["ref:refs/heads/nothing", "ref:refs/heads/main", "environment:production", "pull_request"].map(
    (rest) => `repo:nobody/nothing:${rest}`,
  ),
  "project_path:nobody/nothing:ref_type:branch:ref:main",
];

/** @returns what is wrong with the URL of an issuer, or undefined. */
export function issuerProblem(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url !== undefined && (url.username !== "" || url.password !== "" || url.search !== ""))
    return "has a user, a password or a query; write the issuer as its tokens name it in iss";
  if (/\/\.well-known\//.test(issuer))
    return "is the address of a document of the issuer; leave out /.well-known/ and what follows";
  return checkHttpUrl(issuer, undefined);
}

/** @returns the field of a Receiver that lets strangers in, and why, or undefined. Each pattern is a regular expression. */
export function openClaims(issuer: string, claims: Readonly<Record<string, string>>): FieldProblem | undefined {
  const identities = publicIssuers.get(issuer.replace(/\/$/, ""));
  if (identities === undefined) {
    if (Object.values(claims).some((pattern) => !fitsAnyUser(pattern))) return undefined;
    const remedy = "name one claim with a pattern that only your senders fit, such as sub";
    return { field: "spec.oidc.claims", message: `fits any user of the issuer; ${remedy}` };
  }
  const given = identities.flatMap((identity) => {
    const { [identity.claim]: pattern } = claims;
    return pattern === undefined ? [] : [{ ...identity, pattern }];
  });
  if (given.some(({ pattern, ...identity }) => namesBeginning(pattern, identity))) return undefined;
  const why = `${issuer} gives tokens to everybody`;
  const [open] = given;
  if (open === undefined)
    return { field: "spec.oidc.claims", message: `names nobody, and ${why}; ${addOne(identities)}` };
  const { claim, pattern, example } = open;
  const remedy = `write its owner letter by letter, such as ${example}`;
  return {
    field: `spec.oidc.claims.${claim}`,
    message: `fits owners that it does not name, and ${why}; ${remedy} (got ${excerptOf(pattern)})`,
  };
}

function addOne(identities: readonly Identity[]): string {
  const [{ claim, example } = { claim: "sub", example: "acme" }] = identities;
  return `add one of ${identities.map((each) => each.claim).join(", ")}, such as ${claim}: ${example}`;
}

function fitsAnyUser(pattern: string): boolean {
  const regex = parseLinearRegex(pattern, { isWhole: true });
  return typeof regex !== "string" && anyUser.some(regex);
}
