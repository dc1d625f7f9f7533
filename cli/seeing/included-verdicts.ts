import { ApiFailure } from "#cli/session/api-client.ts";
import type { Session } from "#cli/session/session.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ArtifactItem } from "#shared/fleet/api/artifact-item.ts";
import type { ApiList, SourceObject } from "#shared/fleet/api/objects.ts";
import type { IncludedVerdict } from "#shared/fleet/api/source-verdict.ts";
import type { IncludedArtifact } from "#shared/fleet/rows/object-rows.ts";

/** Says of each Source that is a part of an artifact whether that revision of it was verified. */
export async function includedVerdicts(
  session: Session,
  source: SourceObject,
  revision: string | undefined,
): Promise<readonly IncludedVerdict[]> {
  const { artifact } = source.status;
  const shown = revision ?? artifact?.revision;
  if (shown === undefined) return [];
  const had = shown === artifact?.revision ? artifact : await artifactOf(session, source.metadata.name, shown);
  return Promise.all((had?.included ?? []).map((one) => verdictOf(session, one)));
}

async function verdictOf(session: Session, included: IncludedArtifact): Promise<IncludedVerdict> {
  const { source, fromPath, toPath = source, revision, digest } = included;
  const about = { source, fromPath, toPath, revision, digest };
  const found = await artifactOf(session, source, revision);
  if (found === undefined) return { ...about, verified: false, reason: "NotFound" };
  if (found.verified === undefined) return { ...about, verified: false, reason: "NotDemanded" };
  return { ...about, ...found.verified, verified: true };
}

/** Undefined for one that is forgotten, and for a Source that was deleted. */
async function artifactOf(session: Session, name: string, reference: string): Promise<ArtifactItem | undefined> {
  const namespace = percentEncode(session.namespace());
  const path = `/v1/sources/${namespace}/${percentEncode(name)}/artifacts`;
  try {
    const { items } = await session.api.call<ApiList<ArtifactItem>>({ method: "GET", path, query: { reference } });
    return items[0];
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return undefined;
    throw error;
  }
}
