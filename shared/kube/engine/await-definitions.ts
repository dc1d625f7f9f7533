import type { Clock, SleepingClock } from "#shared/base/clock.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { kindsOfDefinition, resolveKind } from "#shared/kube/engine/resolve-objects.ts";
import { computeStatus } from "#shared/kube/health/compute-status.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

const pollMs = 150;

export interface AwaitRequest {
  /** Applied definitions that are not known to be established. */
  readonly definitions: readonly ManifestObject[];
  readonly clock: SleepingClock;
  readonly until: Date;
}

/**
 * Waits until the definitions are established and discovery shows their kinds, but not beyond `until`.
 * @returns the names of those that are not, with the reason; empty when all are.
 */
export async function awaitDefinitions(client: ClusterClient, request: AwaitRequest): Promise<readonly string[]> {
  let waiting = request.definitions;
  for (;;) {
    client.forgetKinds();
    const verdicts = await Promise.all(waiting.map((definition) => obstacleOf(client, definition, request.clock)));
    const left = waiting.filter((_definition, index) => verdicts[index] !== undefined);
    if (left.length === 0) return [];
    if (request.clock.now() >= request.until) return verdicts.filter((verdict) => verdict !== undefined);
    waiting = left;
    await request.clock.sleep(pollMs);
  }
}

async function obstacleOf(
  client: ClusterClient,
  definition: ManifestObject,
  clock: Clock,
): Promise<string | undefined> {
  const name = definition.metadata.name;
  const kind = await resolveKind(client, definition);
  if (!("plural" in kind)) return `${name}: ${kind.message}`;
  const live = await client.get(kind, { namespace: "", name });
  if (live === undefined) return `${name}: it was deleted`;
  const health = computeStatus(live, { now: clock.now() });
  if (health.status !== "Current") return `${name}: ${health.reason ?? health.status}: ${health.message}`;
  for (const query of kindsOfDefinition(definition)) {
    const found = await client.lookup(query);
    if (found.outcome !== "found") return `${name}: ${query.kind} ${query.version} is not served yet`;
  }
  return undefined;
}
