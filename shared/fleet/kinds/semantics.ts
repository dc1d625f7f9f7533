import { counted } from "#shared/base/counted.ts";
import { checkPathTemplate } from "#shared/base/path-template.ts";
import { partitionOf } from "#shared/fleet/eks-arn.ts";
import { chartProblem, expressionsIn } from "#shared/fleet/kinds/chart-fields.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { checkNameTemplate } from "#shared/fleet/kinds/cluster-name.ts";
import type { Document, FieldProblem } from "#shared/fleet/kinds/document.ts";
import { checkParameterPath } from "#shared/fleet/kinds/parameter-path.ts";
import type { ReceiverSpec } from "#shared/fleet/kinds/receiver.ts";
import type { TokenTrust } from "#shared/fleet/kinds/sender-tokens.ts";
import {
  addressIn,
  folderFor,
  followsTags,
  type GitUpstream,
  type HelmUpstream,
  type RemoteUpstream,
  type SourceSpec,
  upstreamOf,
} from "#shared/fleet/kinds/source.ts";
import { specialisationProblems } from "#shared/fleet/kinds/specialisation-fields.ts";
import type { SyncTemplate, TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import { templatePins, templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { issuerProblem, openClaims } from "#shared/fleet/kinds/token-issuer.ts";
import { awsPlace } from "#shared/source/aws-place.ts";
import { checkFileUrl, checkGitUrl, checkRepositoryUrl } from "#shared/source/git-url.ts";
import { ignoreProblem } from "#shared/source/ignore-pattern.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";
import { checkOciUrl } from "#shared/source/oci/oci-url.ts";
import { parseCosignKey } from "#shared/source/signatures/cosign-key.ts";
import { isPgpKey, pgpKeyProblem } from "#shared/source/signatures/pgp-key.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { trustedRootProblem } from "#shared/source/signatures/trusted-root.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import { parseVersionConstraint, VersionConstraintError } from "#shared/source/version-constraint.ts";

/** An object is one row, of which DynamoDB accepts 400 KB; the rest is kept for its status. */
const maxDocumentBytes = 300_000;
/** An edit may replace all of these by others, in one transaction of at most 100 writes. */
const mostNames = 48;

/** Checks that a schema cannot state: URLs, version ranges and path expressions. */
export function semanticProblems(document: Document): readonly FieldProblem[] {
  const bytes = new TextEncoder().encode(JSON.stringify(document)).length;
  if (bytes > maxDocumentBytes) {
    const message = `has ${bytes} bytes as JSON; expected at most ${maxDocumentBytes}: shorten its annotations, values or lists of names`;
    return [{ field: "", message }];
  }
  if (document.kind === "Source") return sourceProblems(document);
  if (document.kind === "Receiver") return receiverProblems(document.spec);
  if (document.kind === "ClusterDiscovery") return discoveryProblems(document.spec);
  if (document.kind === "Sync") return templateProblems("spec", { name: document.metadata.name, ...document.spec });
  if (document.kind === "SyncGroup") {
    const { templates } = document.spec;
    return [
      ...problemsAt("spec.templates", namesProblem(templates)),
      ...templates.flatMap((template, index) => templateProblems(`spec.templates[${index}]`, template)),
    ];
  }
  return [];
}

function namesProblem(templates: readonly SyncTemplate[]): string | undefined {
  const sources = new Set(templates.flatMap(templateSources)).size;
  const revisions = templatePins(templates).length;
  if (sources + revisions <= mostNames) return undefined;
  return `names ${counted(sources, "Source")} and ${counted(revisions, "revision")}; a group names at most ${mostNames} of both, so divide it into several`;
}

function receiverProblems({ secrets = [], oidc }: ReceiverSpec): readonly FieldProblem[] {
  // The value is in no message, because it may be the secret itself.
  const message =
    "is not below INSTALLATION/hooks/, and Starling reads no other secret for a Receiver; write the name of one there, such as starling/hooks/shop";
  return [
    ...secrets.flatMap((name, index) =>
      problemsAt(`spec.secrets[${index}]`, name.includes("/hooks/") ? undefined : message),
    ),
    ...(oidc === undefined ? [] : tokenProblems(oidc)),
  ];
}

function tokenProblems({ issuer, claims }: TokenTrust): readonly FieldProblem[] {
  const patterns = Object.entries(claims).flatMap(([name, pattern]) =>
    problemsAt(`spec.oidc.claims.${name}`, regexProblem(pattern)),
  );
  const open = patterns.length > 0 ? undefined : openClaims(issuer, claims);
  return [...problemsAt("spec.oidc.issuer", issuerProblem(issuer)), ...patterns, ...(open === undefined ? [] : [open])];
}

function sourceProblems(document: Extract<Document, { kind: "Source" }>): readonly FieldProblem[] {
  const upstream = upstreamOf(document.spec);
  const { kind } = upstream;
  const tagProblems = problemsAt(
    "spec.immutableTags",
    document.spec.immutableTags === true && !followsTags(upstream)
      ? "needs a tag or a version to follow, and the Source follows none; leave it out"
      : undefined,
  );
  const ownProblems = [...tagProblems, ...ignoreProblems(document.spec), ...inclusionProblems(document)];
  if (kind === "s3" || kind === "external") return ownProblems;
  const semver = kind === "archive" ? undefined : upstream.ref?.semver;
  const tagFilter = kind === "git" || kind === "oci" ? upstream.ref?.tagFilter : undefined;
  return [
    ...problemsAt(`spec.${kind}.url`, urlProblem(upstream)),
    ...problemsAt(`spec.${kind}.ref.tagFilter`, tagFilter === undefined ? undefined : regexProblem(tagFilter)),
    ...(upstream.kind === "git" ? signInProblems(upstream) : []),
    ...(upstream.kind === "helm" ? registryLoginProblems(upstream) : []),
    ...roleProblems(upstream),
    ...problemsAt(`spec.${kind}.ref.semver`, semver === undefined ? undefined : versionRangeProblem(semver)),
    ...ownProblems,
    ...(kind === "git" ? keyProblems(upstream.verify?.keys ?? []) : []),
    ...(kind === "helm" ? provenanceProblems(upstream.verify?.provenance?.keys ?? []) : []),
    ...cosignProblems(upstream),
  ];
}

function ignoreProblems({ ignore, helm }: SourceSpec): readonly FieldProblem[] {
  if (ignore === undefined) return [];
  const ofChart =
    "is not used with helm: a chart is taken as it is published, without what its own .helmignore names; remove it";
  return problemsAt("spec.ignore", helm === undefined ? ignoreProblem(ignore) : ofChart);
}

function inclusionProblems({ metadata, spec }: Extract<Document, { kind: "Source" }>): readonly FieldProblem[] {
  const { include = [] } = spec;
  return include.flatMap((one, index) => {
    const place = folderFor(one);
    const other = include.findIndex((each, at) => at < index && areWithin(folderFor(each), place));
    const at = `spec.include[${index}]`;
    const itself = "is this Source itself; name another one, or leave it out";
    const root =
      'must be a folder that nothing else uses, such as vendor/charts; "." has the files of the Source itself';
    const taken = `is "${place}", and spec.include[${other}] puts its files into "${folderFor(include[other] ?? one)}"; give each a folder of its own`;
    return [
      ...problemsAt(`${at}.source`, one.source === metadata.name ? itself : undefined),
      ...problemsAt(`${at}.toPath`, place === "." ? root : other < 0 ? undefined : taken),
    ];
  });
}

function areWithin(a: string, b: string): boolean {
  return isWithin(a, [b]) || isWithin(b, [a]);
}

function cosignProblems(upstream: RemoteUpstream): readonly FieldProblem[] {
  const { kind } = upstream;
  const trust = kind === "helm" || kind === "oci" ? upstream.verify?.cosign : undefined;
  if (trust === undefined) return [];
  const at = `spec.${kind}.verify.cosign`;
  const { keys = [], identities = [], trustedRoot } = trust;
  return [
    ...keys.flatMap((text, index) => {
      const key = parseCosignKey(text);
      return problemsAt(`${at}.keys[${index}]`, typeof key === "string" ? key : undefined);
    }),
    ...identities.flatMap(({ issuer, subject }, index) => [
      ...problemsAt(`${at}.identities[${index}].issuer`, regexProblem(issuer)),
      ...problemsAt(`${at}.identities[${index}].subject`, regexProblem(subject)),
    ]),
    ...problemsAt(`${at}.trustedRoot`, trustedRoot === undefined ? undefined : trustedRootProblem(trustedRoot)),
  ];
}

/** A key works over SSH only, and SSH with a key only. */
function signInProblems({ url, credentials }: GitUpstream): readonly FieldProblem[] {
  const isSsh = url.startsWith("ssh:");
  if (credentials === undefined) {
    const remedy = "write credentials: {secret: NAME, kind: ssh} beside it";
    return problemsAt(
      "spec.git.credentials",
      isSsh ? `is required, because SSH is read with a key; ${remedy}` : undefined,
    );
  }
  if (isSsh === (credentials.kind === "ssh")) return [];
  const remedy = isSsh
    ? 'must be "ssh" for an address that begins with ssh://'
    : "is for an address that begins with ssh://; use basic, bearer, tls or githubApp";
  return problemsAt("spec.git.credentials.kind", remedy);
}

/** Starling's own role opens repositories of AWS only. */
function roleProblems(upstream: RemoteUpstream): readonly FieldProblem[] {
  const { kind, credentials } = upstream;
  if (credentials?.kind !== "aws") return [];
  const service = awsPlace(addressIn(upstream))?.service;
  if (service !== undefined && (service === "ecr") === (kind !== "git")) return [];
  const place =
    kind === "git"
      ? "CodeCommit (https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME) or CodeConnections"
      : "ECR (oci://ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY)";
  return problemsAt(`spec.${kind}.credentials.kind`, `is for a repository in ${place}; name a secret for any other`);
}

function registryLoginProblems({ url, credentials }: HelmUpstream): readonly FieldProblem[] {
  if (credentials?.kind !== "dockerConfig" || url.startsWith("oci:")) return [];
  return problemsAt(
    "spec.helm.credentials.kind",
    "is for an address that begins with oci://; use basic, bearer or tls for a Helm repository",
  );
}

function keyProblems(keys: readonly string[]): readonly FieldProblem[] {
  return keys.flatMap((text, index) => {
    return problemsAt(`spec.git.verify.keys[${index}]`, isPgpKey(text) ? pgpKeyProblem(text) : sshKeyProblem(text));
  });
}

function provenanceProblems(keys: readonly string[]): readonly FieldProblem[] {
  return keys.flatMap((text, index) => problemsAt(`spec.helm.verify.provenance.keys[${index}]`, pgpKeyProblem(text)));
}

function sshKeyProblem(text: string): string | undefined {
  const key = parseSshKey(text);
  return typeof key === "string" ? key : undefined;
}

function urlProblem({ kind, url }: RemoteUpstream): string | undefined {
  if (kind === "git") return checkGitUrl(url);
  if (kind === "oci" || (kind === "helm" && url.startsWith("oci:"))) return checkOciUrl(url);
  return kind === "helm" ? checkRepositoryUrl(url) : checkFileUrl(url);
}

function problemsAt(field: string, message: string | undefined): readonly FieldProblem[] {
  return message === undefined ? [] : [{ field, message }];
}

function discoveryProblems({ name, eks, values }: ClusterDiscoverySpec): readonly FieldProblem[] {
  const problem = checkNameTemplate(name);
  const pathProblem = values?.ssm === undefined ? undefined : checkParameterPath(values.ssm.path);
  const partitions = new Set(eks.regions.map(partitionOf));
  const mixed = `are of ${[...partitions].join(" and ")}; accounts are in one of these: write a ClusterDiscovery for each`;
  return [
    ...(problem === undefined ? [] : [{ field: "spec.name", message: problem }]),
    ...(pathProblem === undefined ? [] : [{ field: "spec.values.ssm.path", message: pathProblem }]),
    ...(partitions.size === 1 ? [] : [{ field: "spec.eks.regions", message: mixed }]),
  ];
}

function regexProblem(text: string): string | undefined {
  const regex = parseLinearRegex(text);
  return typeof regex === "string" ? regex : undefined;
}

function versionRangeProblem(text: string): string | undefined {
  try {
    parseVersionConstraint(text);
    return undefined;
  } catch (error) {
    if (error instanceof VersionConstraintError) return error.message;
    throw error;
  }
}

function templateProblems(at: string, template: SyncTemplate): readonly FieldProblem[] {
  const lacking = chartProblem(template);
  const overrides = (template.overrides ?? []).map((fields, index) => [`${at}.overrides[${index}]`, fields] as const);
  const all = [[at, template] as const, ...overrides];
  return [
    ...(lacking === undefined ? [] : [{ field: `${at}.${lacking.field}`, message: lacking.message }]),
    ...all.flatMap(([place, fields]) => renderProblems(place, fields)),
    ...specialisationProblems(
      all,
      all.flatMap(([, fields]) => Object.values(expressionsOf(fields)).flat()),
    ),
  ];
}

type Rendered = Pick<TemplateOverride, "path" | "render">;

/** The texts of a template whose expressions are evaluated, by field. */
function expressionsOf({ path, render }: Rendered): Readonly<Record<string, readonly string[]>> {
  const { values, valuesFrom = [] } = render?.helm ?? {};
  const files = valuesFrom.map(({ path: file }, index) => [`render.helm.valuesFrom[${index}].path`, [file]] as const);
  return {
    path: path === undefined ? [] : [path],
    ...Object.fromEntries(files),
    "render.helm.values": expressionsIn(values),
  };
}

function renderProblems(at: string, fields: Rendered): readonly FieldProblem[] {
  return Object.entries(expressionsOf(fields)).flatMap(([field, texts]) =>
    texts.flatMap((text) => pathProblems(`${at}.${field}`, text)),
  );
}

function pathProblems(field: string, path: string): readonly FieldProblem[] {
  const problem = checkPathTemplate(path);
  return problem === undefined ? [] : [{ field, message: problem }];
}
