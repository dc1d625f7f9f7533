const codes: ReadonlySet<string> = new Set([
  "SecretNotFound",
  "SecretDenied",
  "SecretKeyDenied",
  "SecretUnbound",
  "SecretMismatch",
  "InvalidCredentials",
  "AddressRefused",
  "InvalidAuthority",
  "RoleDenied",
  "RegionDisabled",
  "TokenTooLarge",
  "EksDenied",
  "EksClusterNotFound",
  "EksClusterNotActive",
]);

/**
 * Without credentials there is no cluster to reach: somebody has to act, and no rollout is to fail for it meanwhile. A service
 * that has them and does not answer says nothing of the cluster.
 * @param code - of a `StarlingError`.
 */
export function isOfCredentials(code: string): boolean {
  return codes.has(code);
}
