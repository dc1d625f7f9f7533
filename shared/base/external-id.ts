/**
 * The `sts:ExternalId` that Starling uses to assume the role of a Cluster: the installation and the Cluster's name. It
 * is never an input, so that an author of a Cluster cannot choose the id of another Cluster. A role that trusts the id
 * of `prod` is not assumed for a Cluster `mine` that names the role, and not by another installation.
 */
export function externalIdOf(installation: string, cluster: string): string {
  return `${installation}/${cluster}`;
}
