/** Why no worker reaches a cluster whose zone does not exist, and what to do. */
export function unknownZone(zone: string, cluster: string): { readonly message: string; readonly remedy: string } {
  return {
    message: `spec.access.zone names a zone that the installation does not have: ${zone}`,
    remedy: `add ${zone} to the setting zones and deploy, or correct spec.access.zone of Cluster ${cluster}`,
  };
}
