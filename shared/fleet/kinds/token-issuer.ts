/** Issuers of tokens, and what tells their users apart. */
import { checkHttpUrl } from "#shared/source/http-url.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";

/** Issuers that give tokens to everybody, with the claims that say who has one. */
const publicIssuers: Readonly<Record<string, readonly string[]>> = {
  "https://token.actions.githubusercontent.com": [
    ...["repository", "repository_id", "repository_owner", "repository_owner_id", "sub"],
    ...["job_workflow_ref", "workflow_ref", "enterprise", "enterprise_id"],
  ],
  "https://gitlab.com": [
    ...["project_path", "project_id", "namespace_path", "namespace_id", "sub"],
    ...["ci_config_ref_uri", "user_login", "user_email", "user_id"],
  ],
  "https://accounts.google.com": ["email", "sub", "hd", "azp"],
};

/** Texts that strangers have in their claims. A pattern that fits one of them demands nothing. */
const strangers = [
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

/** @returns why the patterns let strangers in, or undefined. Each is a regular expression. */
export function openClaims(issuer: string, claims: Readonly<Record<string, string>>): string | undefined {
  const known = publicIssuers[issuer.replace(/\/$/, "")];
  const names = Object.keys(claims).filter((name) => known === undefined || known.includes(name));
  const isPublic = known !== undefined;
  if (names.some((name) => !isOpen(claims[name] ?? "", { isPublic }))) return undefined;
  if (known === undefined)
    return "fits any user of the issuer; name one claim with a pattern that only your senders fit, such as sub";
  const [first] = known;
  return `fits anybody, because ${issuer} gives tokens to everybody; name your own with a pattern for ${first}, such as ${first}: ${example(first)}`;
}

function example(claim: string | undefined): string {
  return claim === "email" ? "ci@acme.example" : "acme/shop";
}

function isOpen(pattern: string, { isPublic }: { readonly isPublic: boolean }): boolean {
  const regex = parseLinearRegex(pattern, { isWhole: true });
  if (typeof regex === "string") return false;
  return strangers.some(regex) || (isPublic && namesakesOf(pattern).some(regex));
}

/** Anybody may give a repository the name of yours, and an account a name that begins like yours. */
function namesakesOf(pattern: string): readonly string[] {
  const words = new Set(pattern.match(/[\w-]+/g));
  return [...words].flatMap((word) => [
    ...[`nobody/${word}`, `repo:nobody/${word}:ref:refs/heads/main`],
    ...[`${word}nobody`, `${word}nobody/nothing`, `repo:${word}nobody/nothing:ref:refs/heads/main`],
    `project_path:nobody/${word}:ref_type:branch:ref:main`,
    `project_path:${word}nobody/nothing:ref_type:branch:ref:main`,
  ]);
}
