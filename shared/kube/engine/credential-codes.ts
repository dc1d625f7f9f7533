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

const servicesAway: ReadonlySet<string> = new Set(["SecretsUnavailable", "StsUnavailable", "EksUnavailable"]);

/**
 * Whether the error means that Starling has no valid credentials for the cluster. A person has to act, and no rollout
 * may fail because of it.
 * @param code - of a `StarlingError`.
 */
export function isOfCredentials(code: string): boolean {
  return codes.has(code);
}

/**
 * Whether a service of AWS that a worker asks before it reaches the cluster does not answer, as when the network of a
 * zone is down. It passes by itself, and no rollout may fail because of it.
 * @param code - of a `StarlingError`, or the reason that it became.
 */
export function isOfServiceAway(code: string): boolean {
  return servicesAway.has(code);
}
