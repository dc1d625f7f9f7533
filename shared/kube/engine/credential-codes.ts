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

/**
 * Whether the error means that Starling has no valid credentials for the cluster. A person has to act, and no rollout
 * may fail because of it. A credential service that does not answer says nothing about the cluster.
 * @param code - of a `StarlingError`.
 */
export function isOfCredentials(code: string): boolean {
  return codes.has(code);
}
