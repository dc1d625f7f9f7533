/** Codes of what is not verified. */
export const unverified = [
  "SignatureMissing",
  "SignatureInvalid",
  "SignatureKeyUnknown",
  "SignatureKeyExpired",
  "SignatureKeyRevoked",
  "SignatureWeak",
  "SignatureIdentityUnknown",
  "SignatureCertificateInvalid",
  "SignatureNotLogged",
  "SignatureOfAnother",
  "TagNotAnnotated",
] as const;

/**
 * The codes of Starling's own errors, from git, clusters and storage. A caught error's code is shown as a reason:
 * docs/reasons.md explains each code, in this order.
 */
export const errorCodes = [
  // A Source.
  "GitAuthenticationFailed",
  "HostKeyMismatch",
  "GitNotFound",
  "GitRefNotFound",
  "EmptyGitRepository",
  "GitOperationFailed",
  "GitFetchInterrupted",
  "GitTooLarge",
  "GitPathRefused",
  "AuthenticationFailed",
  "UpstreamNotFound",
  "UpstreamUnavailable",
  "UpstreamTooLarge",
  "RateLimited",
  "HostSilent",
  "BucketNotAllowed",
  "BucketNotFound",
  "BucketDenied",
  "BucketElsewhere",
  "BucketKeyRefused",
  "ChecksumMismatch",
  ...unverified,
  "TagMoved",
  "PathNotFound",
  "IncludeUnavailable",
  "IncludeCycle",
  "IncludeConflict",
  "ArtifactGone",
  "ArchiveInvalid",
  "ArtifactInvalid",
  // Secrets, and addresses.
  "SecretNotFound",
  "SecretDenied",
  "SecretKeyDenied",
  "SecretsUnavailable",
  "SecretUnbound",
  "SecretMismatch",
  "InvalidCredentials",
  "AwsSourceDenied",
  "InvalidCluster",
  "InvalidAuthority",
  "AddressRefused",
  "InvalidAllowList",
  // The way to a cluster or an account.
  "RoleDenied",
  "RegionDisabled",
  "TokenTooLarge",
  "StsUnavailable",
  "ZoneNotFound",
  "NameNotServed",
  "EksClusterNotFound",
  "EksClusterNotActive",
  "EksDenied",
  "EksThrottled",
  "EksUnavailable",
  "RegionOff",
  "AccountDenied",
  "AccountThrottled",
  "AccountUnavailable",
  // An alarm beside a bake.
  "AlarmNotFound",
  "AlarmDenied",
  "AlarmsUnavailable",
  // A rendering.
  "KustomizeFailed",
  "HelmFailed",
  "KubectlNotFound",
  "HelmNotFound",
  "PathRefused",
  "RenderingTooLarge",
  "BuilderBusy",
  "BuildFailed",
  // Rows, blobs and messages.
  "TableBusy",
  "UnexpectedRow",
  "FreezesUnreadable",
  "BlobNotFound",
  "BlobCorrupt",
  "BlobDenied",
  "BlobStoreBusy",
  "BlobTooLarge",
  "SendFailed",
  "ReturnRefused",
  "TransferFailed",
  "Internal",
] as const;

/** Codes that are also reasons without an error. They are listed in `reasons`. */
type SharedCode =
  | "Conflict"
  | "KindUnavailable"
  | "NewerRow"
  | "NoProgress"
  | "OutOfTime"
  | "RenderingLost"
  | "RevisionNotStored"
  | "RowTooLarge";

/** A worker in another account or region has no session for the rows. It can write no reason anywhere: only logs have them. */
export const dataRoleCodes = ["DataRoleDenied", "DataRoleUnavailable"] as const;

export type ErrorCode = (typeof errorCodes)[number] | (typeof dataRoleCodes)[number] | SharedCode;

declare const other: unique symbol;

/**
 * A code that is never a reason, from an answer of the API or a rendered file, and a code that a row already contains.
 */
export type OtherCode = string & { readonly [other]: true };

export function otherCode(code: string): OtherCode {
  return code as OtherCode;
}
