const codes: ReadonlySet<string> = new Set([
  "SecretNotFound",
  "SecretDenied",
  "SecretKeyDenied",
  "SecretUnbound",
  "SecretMismatch",
  "InvalidCredentials",
  "AddressRefused",
  "InvalidAuthority",
  "ZoneNotFound",
  "NameNotServed",
  "RoleDenied",
  "RegionDisabled",
  "TokenTooLarge",
  "EksDenied",
  "EksClusterNotFound",
  "EksClusterNotActive",
]);

const servicesAway: ReadonlySet<string> = new Set([
  "BlobStoreBusy",
  "EksUnavailable",
  "SecretsUnavailable",
  "StsUnavailable",
]);

/**
 * Whether the error means that Starling has no valid credentials for the cluster. A person has to act, and no rollout
 * may fail because of it.
 * @param code - of a `StarlingError`.
 */
export function isOfCredentials(code: string): boolean {
  return codes.has(code);
}

/**
 * Whether a service of AWS that a worker needs for its cluster does not answer, as when the network of a zone is down or
 * has no endpoint of S3. It passes by itself, and no rollout may fail because of it.
 * @param code - of a `StarlingError`, or the reason that it became.
 */
export function isOfServiceAway(code: string): boolean {
  return servicesAway.has(code);
}
