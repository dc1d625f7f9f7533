import { externalIdOf } from "#shared/base/external-id.ts";

/** The `sts:ExternalId` of `discover`. No Cluster can have such a name, so that neither can act as the other. */
export function discoveryIdentity(installation: string, discovery: string): string {
  return externalIdOf(installation, `discovery/${discovery}`);
}
