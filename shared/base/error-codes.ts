/**
 * The codes of errors that Starling makes itself, on the way to git, to clusters and to what it stores. Who catches one tells
 * people its code as a reason: docs/reasons.md says of each what it means and what to do, in this order.
 */
export const errorCodes = [
  // A Source.
  "GitAuthenticationFailed",
  "GitNotFound",
  "GitRefNotFound",
  "EmptyGitRepository",
  "GitOperationFailed",
  "GitFetchInterrupted",
  "GitTooLarge",
  "GitPathRefused",
  "PathNotFound",
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
  "InvalidCluster",
  "InvalidAuthority",
  "AddressRefused",
  "InvalidAllowList",
  // The way to a cluster or an account.
  "RoleDenied",
  "RegionDisabled",
  "TokenTooLarge",
  "StsUnavailable",
  "EksClusterNotFound",
  "EksClusterNotActive",
  "EksDenied",
  "EksThrottled",
  "EksUnavailable",
  "RegionOff",
  "AccountDenied",
  "AccountThrottled",
  "AccountUnavailable",
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

/** Those that are also said where nothing was thrown: they stand among the reasons of what they are about. */
type SharedCode =
  | "Conflict"
  | "KindUnavailable"
  | "NewerRow"
  | "NoProgress"
  | "OutOfTime"
  | "RenderingLost"
  | "RowTooLarge";

export type ErrorCode = (typeof errorCodes)[number] | SharedCode;

declare const other: unique symbol;

/** Of an answer of the API or of files that are rendered, which is nobody's reason; and as a row has one that was told. */
export type OtherCode = string & { readonly [other]: true };

export function otherCode(code: string): OtherCode {
  return code as OtherCode;
}
