/**
 * What Starling says as `sts:ExternalId` when it assumes the role of a Cluster: the installation, and the Cluster's own name.
 * Nobody writes it down, so nobody who may write a Cluster can choose another one's: a role that trusts the id of `prod` is
 * not assumed for the sake of a Cluster `mine` that names it, nor by another installation.
 */
export function externalIdOf(installation: string, cluster: string): string {
  return `${installation}/${cluster}`;
}
