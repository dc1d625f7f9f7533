import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { hiddenValue } from "#shared/base/hidden-value.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { cosignTrust } from "#shared/fleet/kinds/cosign-trust.ts";
import { namespacedMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { partPath } from "#shared/fleet/kinds/part-path.ts";
import { principalPattern } from "#shared/fleet/kinds/principal-pattern.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { secretName } from "#shared/fleet/kinds/secret-name.ts";
import { bucketName } from "#shared/fleet/source-buckets.ts";
import { gitRefSchema, namesTags, tagFilterSchema } from "#shared/source/git-ref-schema.ts";

const rangeWords = "must be a version range such as >=1.2.0 <2";
const versionRange = boundedText(512, rangeWords).min(1, rangeWords);
/** An address, with an example for whoever has written none. */
const address = (example: string) => {
  const words = `the address, such as ${example}`;
  return boundedText(2048, words).min(1, `must be ${words}`);
};

const credentials = z.strictObject({
  /** Name of a secret: JSON with `host`, and `username` and `password` (basic), `token` (bearer) or `certificate` and `privateKey` (tls). */
  secret: secretName,
  kind: z.enum(["basic", "bearer", "tls"], 'must be "basic", "bearer" or "tls"'),
});

const registryCredentials = z
  .strictObject({
    secret: secretName.optional(),
    /** `dockerConfig`: the secret has the `auths` of Docker's configuration. `aws`: Starling's own role, without a secret. */
    kind: z.enum(
      ["basic", "bearer", "tls", "dockerConfig", "aws"],
      'must be "basic", "bearer", "tls", "dockerConfig" or "aws"',
    ),
  })
  .superRefine(secretOfKind);

const gitCredentials = z
  .strictObject({
    secret: secretName.optional(),
    /** `ssh`: the secret has `privateKey`, `passphrase` if the key has one, and `knownHosts`. `githubApp`: `appId`, `owner` or `installationId`, and `privateKey`. */
    kind: z.enum(
      ["basic", "bearer", "tls", "ssh", "githubApp", "aws"],
      'must be "basic", "bearer", "tls", "ssh", "githubApp" or "aws"',
    ),
  })
  .superRefine(secretOfKind);

/** A role is no secret, and everything else is one. */
function secretOfKind(
  { secret, kind }: { readonly secret?: string | undefined; readonly kind: string },
  context: z.RefinementCtx,
): void {
  if ((kind === "aws") === (secret === undefined)) return;
  const message =
    kind === "aws"
      ? "is not used with kind: aws, which signs in as Starling's own role; remove it"
      : "is required: the name of a secret in AWS Secrets Manager";
  context.addIssue({ code: "custom", message, path: ["secret"], params: hiddenValue });
}

const publicKeys = boundedList(
  boundedText(16_384).min(1, "must not be empty"),
  20,
  "must be a list of public keys",
).min(1, "must have at least one public key");

const verification = z.strictObject({
  /** The object whose signature is verified. */
  mode: z.enum(["HEAD", "Tag", "TagAndHEAD"], 'must be "HEAD", "Tag" or "TagAndHEAD"'),
  /** Public keys; a signature of any of them counts. They are no secrets, and a change of them is a change of the spec. */
  keys: publicKeys,
});
export type GitVerification = z.infer<typeof verification>;

const gitUpstream = z
  .strictObject({
    url: address("https://github.com/acme/shop"),
    ref: gitRefSchema.optional(),
    credentials: gitCredentials.optional(),
    verify: verification.optional(),
  })
  .refine(({ verify, ref }) => verify === undefined || verify.mode === "HEAD" || namesTags(ref), {
    message: "verifies a tag, and the Source follows none: set ref.tag or ref.semver, or use HEAD",
    path: ["verify", "mode"],
  });
export type GitUpstream = z.infer<typeof gitUpstream>;

const archiveUpstream = z.strictObject({
  url: address("https://downloads.example/shop-1.4.0.tar.gz"),
  /** Of the downloaded file: the only proof that it is the file that was meant. */
  sha256: boundedText(500, "the checksum of the file, as sha256sum prints it").regex(
    /^[0-9a-f]{64}$/,
    "must be the 64 hexadecimal digits in lower case that `sha256sum` prints, without anything else",
  ),
  credentials: credentials.optional(),
});
export type ArchiveUpstream = z.infer<typeof archiveUpstream>;

const provenanceTrust = z.strictObject({
  /** OpenPGP public keys; a signature of any of them counts. */
  keys: publicKeys,
});

const helmVerification = z
  .strictObject({ provenance: provenanceTrust.optional(), cosign: cosignTrust.optional() })
  .refine(({ provenance, cosign }) => (provenance === undefined) !== (cosign === undefined), {
    message: "needs exactly one of provenance or cosign",
  });

const helmUpstream = z
  .strictObject({
    url: address("oci://ghcr.io/acme/charts"),
    chart: boundedText(200, "the name of the chart, such as ingress-nginx").regex(
      /^[a-zA-Z0-9][\w.-]*$/,
      "must be the name of a chart, such as ingress-nginx; its folder belongs into url",
    ),
    ref: z.strictObject({ semver: versionRange }).optional(),
    credentials: registryCredentials.optional(),
    verify: helmVerification.optional(),
  })
  .refine(({ url, verify }) => verify?.cosign === undefined || url.startsWith("oci://"), {
    message: "verifies charts of a registry only: use a url that begins with oci://, or verify the provenance",
    path: ["verify", "cosign"],
  });
export type HelmUpstream = z.infer<typeof helmUpstream>;

/** A part of the path of a request. */
export const ociTag = boundedText(128).regex(/^\w[\w.-]*$/, "is not the name of a tag");

const ociUpstream = z.strictObject({
  url: address("oci://ghcr.io/acme/shop"),
  ref: z
    .strictObject({
      tag: ociTag.optional(),
      semver: versionRange.optional(),
      tagFilter: tagFilterSchema.optional(),
      digest: boundedText(71)
        .regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 hexadecimal digits in lower case")
        .optional(),
    })
    .refine(
      (ref) => [ref.tag, ref.semver, ref.digest].filter((part) => part !== undefined).length === 1,
      "needs exactly one of tag, semver or digest (leave ref out for the tag latest)",
    )
    .refine((ref) => ref.tagFilter === undefined || ref.semver !== undefined, {
      message: "may be set only together with semver",
      path: ["tagFilter"],
    })
    .optional(),
  /** The layer with this media type holds the files. Default: the usual ones. */
  mediaType: boundedText(200)
    .regex(/^[\w.+-]+\/[\w.+-]+$/, "must be a media type, such as application/vnd.acme.files.v1.tar+gzip")
    .optional(),
  credentials: registryCredentials.optional(),
  verify: z.strictObject({ cosign: cosignTrust }).optional(),
});
export type OciUpstream = z.infer<typeof ociUpstream>;

const s3Upstream = z.strictObject({
  bucket: boundedText(63).regex(
    bucketName,
    "must be the name of a bucket: small letters, digits, . and -, without s3:// and without a folder",
  ),
  /** The folder that counts; paths are relative to it. */
  prefix: boundedText(1024)
    .regex(
      /^((?!\.\.?(\/|$))[^/\0]+\/)*(?!\.\.?$)[^/\0]+\/?$/,
      'must be a folder of the bucket without "..", such as releases/1.4',
    )
    .optional(),
  /** Default: the region of the installation. */
  region: boundedText(64)
    .regex(/^[a-z]{2,4}(-[a-z]+)+-\d{1,2}$/, "must be the name of a region, such as eu-west-1")
    .optional(),
});
export type S3Upstream = z.infer<typeof s3Upstream>;

/** A part of revisions, which have it before an `@`. */
export const uploadVersion = boundedText(128).regex(
  /^\w[\w.+-]*$/,
  "must be a version of letters, digits and . _ + -, such as 1.4.0 or a commit",
);

const externalUpstream = z.strictObject({
  /** Patterns of the ARNs of users and roles that may push; `*` stands for any part of a name. */
  principals: boundedList(principalPattern, 20).min(1, "must name at least one role or user"),
  /** The Source stays at this version. */
  version: uploadVersion.optional(),
});
export type ExternalUpstream = z.infer<typeof externalUpstream>;

const inclusion = z.strictObject(
  {
    /** Name of a Source of the same namespace. */
    source: nameSchema,
    /** Folder or file of its artifact. */
    fromPath: partPath.default("."),
    /** The folder for the files; nothing else may have files there. Default: the name of the Source. */
    toPath: partPath.optional(),
  },
  { error: ({ code }) => (code === "invalid_type" ? "must be a map of fields, such as {source: charts}" : undefined) },
);
export type Inclusion = z.infer<typeof inclusion>;

/** The folder that gets the files of an included Source. */
export function folderFor({ source, toPath }: Pick<Inclusion, "source" | "toPath">): string {
  return toPath ?? source;
}

/** The places that a Source can be fed from. */
const upstreams = {
  git: gitUpstream.optional(),
  helm: helmUpstream.optional(),
  oci: ociUpstream.optional(),
  s3: s3Upstream.optional(),
  archive: archiveUpstream.optional(),
  external: externalUpstream.optional(),
};
type UpstreamKind = keyof typeof upstreams;
const upstreamKinds = Object.keys(upstreams) as readonly UpstreamKind[];

export const sourceSpec = z
  .strictObject({
    ...upstreams,
    paths: boundedList(partPath, 100)
      .min(1, "must name at least one path; leave it out for the whole repository")
      .default(["."]),
    /** Patterns of gitignore, which have the last word after the files `.sourceignore`. */
    ignore: boundedText(16_384).regex(/\S/, "must have a pattern such as *.md, or be left out").optional(),
    /** Files of other Sources that are added to those of the upstream. */
    include: boundedList(inclusion, 20).min(1, "must name at least one Source, or be left out").optional(),
    /** A tag or version that moved is refused. */
    immutableTags: z.boolean().optional(),
    /** This many of the newest revisions stay stored; more are as long as anything refers to them. */
    retain: z
      .int("must be a whole number, from 1 to 100")
      .min(1, "must be a whole number, from 1 to 100")
      .max(100, "must be a whole number, from 1 to 100")
      .optional(),
    interval: durationSchema({ minSeconds: 10, maxSeconds: 86_400 }).default("5m"),
  })
  .refine((spec) => upstreamKinds.filter((kind) => spec[kind] !== undefined).length === 1, {
    message: "needs exactly one of git, helm, oci, s3, archive or external",
  });
export type SourceSpec = z.infer<typeof sourceSpec>;

/** Names of the Sources that a spec includes. */
export function includedIn({ include = [] }: Pick<SourceSpec, "include">): readonly string[] {
  return [...new Set(include.map(({ source }) => source))];
}

/** Folders of a Source's artifact, as far as its spec tells. */
export function foldersOf({ paths, include = [] }: Pick<SourceSpec, "paths" | "include">): readonly string[] {
  return [...paths, ...include.map(folderFor)];
}

/** The one place that a Source is fed from, with its kind: `git`, `archive`. */
export type Upstream = {
  [Kind in UpstreamKind]: { readonly kind: Kind } & NonNullable<SourceSpec[Kind]>;
}[UpstreamKind];

/** A place that has an address and may need credentials. */
export type RemoteUpstream = Extract<Upstream, { readonly url: string }>;

export function upstreamOf(spec: SourceSpec): Upstream {
  const kind = upstreamKinds.find((each) => spec[each] !== undefined);
  if (kind === undefined) throw new Error("a Source without an upstream passed its schema");
  return { kind, ...spec[kind] } as Upstream;
}

/** Whether the upstream is followed by the name of a tag or version, which somebody could move. */
export function followsTags(upstream: Upstream): boolean {
  switch (upstream.kind) {
    case "git":
      return namesTags(upstream.ref);
    case "helm":
      return true;
    case "oci":
      return upstream.ref?.digest === undefined;
    default:
      return false;
  }
}

/** What credentials are for. The chart in a registry is a part of its address; that of a repository is a name in its index. */
export function addressIn(upstream: RemoteUpstream): string {
  const { kind, url } = upstream;
  return kind === "helm" && url.startsWith("oci:") ? `${url.replace(/\/+$/, "")}/${upstream.chart}` : url;
}

/** The address of a Source's upstream, for people and for comparisons. */
export function addressOf(spec: SourceSpec): string {
  const upstream = upstreamOf(spec);
  if (upstream.kind === "s3") return bucketAddress(upstream);
  if (upstream.kind === "external") return "pushed versions";
  return upstream.kind === "helm" ? `${upstream.url.replace(/\/+$/, "")}/${upstream.chart}` : upstream.url;
}

/** `s3://BUCKET/PREFIX`, as the AWS command line writes it. */
export function bucketAddress({ bucket, prefix = "" }: S3Upstream): string {
  return `s3://${bucket}/${prefix}`.replace(/\/+$/, "");
}

export const sourceDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Source"),
  metadata: namespacedMetadata,
  spec: sourceSpec,
});
