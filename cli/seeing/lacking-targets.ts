/** Clusters that a group selects and that have no assignment of a template. */
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { FleetMember, UnreadableMember } from "#shared/fleet/api/fleet-member.ts";
import type { SyncGroupObject, TargetItem } from "#shared/fleet/api/objects.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { haveDesired } from "#shared/fleet/sync/tally.ts";
import { stateRank } from "#shared/words/state-words.ts";

export interface LackingTarget {
  readonly cluster: string;
  readonly template: string;
  readonly state: string;
  readonly reason: string;
}

/** At most this many clusters of the fleet are read, and targets of the newest rollout. */
const membersRead = 5000;
const targetsRead = 500;

/** The worst first. The fleet is read only if the group's counts say that some clusters lack the desired revision. */
export async function lackingTargets(
  session: Session,
  path: string,
  { spec, status, operations, metadata }: SyncGroupObject,
): Promise<readonly LackingTarget[]> {
  const { clusters, rollout } = status;
  const isWhole = clusters !== undefined && haveDesired(clusters) === clusters.selected;
  if (isWhole || operations?.deletion !== undefined) return [];
  const { items } = await readList<FleetMember | UnreadableMember>(session, {
    path: `${path}/fleet`,
    limit: membersRead,
  });
  const bare = items.flatMap((member) => {
    if ("unreadable" in member) return [];
    const cluster = { name: member.cluster, labels: member.labels };
    if (!selects(spec.clusters, cluster)) return [];
    const known = new Set(member.syncs.map(({ name }) => name));
    const templates = spec.templates.filter((template) => !isDisabledFor(template, cluster));
    return templates.flatMap(({ name }) =>
      known.has(`${metadata.name}.${name}`) ? [] : [{ cluster: member.cluster, template: name }],
    );
  });
  if (bare.length === 0) return [];
  const query = { state: "Failed,Unreachable" };
  const ended =
    rollout === undefined
      ? []
      : (
          await readList<TargetItem>(session, {
            path: `${path}/rollouts/${rollout}/targets`,
            query,
            limit: targetsRead,
          })
        ).items;
  const targets = new Map(ended.map((target) => [target.cluster, target]));
  return bare
    .map((one) => {
      const { state = "Waiting", reason = "" } = targets.get(one.cluster) ?? {};
      return { ...one, state, reason };
    })
    .toSorted((a, b) => stateRank(a.state) - stateRank(b.state));
}
