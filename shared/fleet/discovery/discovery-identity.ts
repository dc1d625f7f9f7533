import { externalIdOf } from "#shared/base/external-id.ts";

/** What `discover` says as `sts:ExternalId`. No Cluster can have such a name, so that neither is let in as the other. */
export function discoveryIdentity(installation: string, discovery: string): string {
  return externalIdOf(installation, `discovery/${discovery}`);
}
