import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { unseenPlace } from "#functions/discover/see-places.ts";
import type { Looker } from "#shared/adapters/aws/eks-inventory.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { Description } from "#shared/fleet/discovery/described-cluster.ts";
import type { ClusterToDescribe } from "#shared/fleet/discovery/plan-scan.ts";
import type { UnseenPlace } from "#shared/fleet/rows/discovery-rows.ts";

/** Requests at once, over all accounts; a single account answers only a few requests a second. */
const askedAtOnce = 10;

export interface AskedClusters {
  /** EKS's description of each cluster that it answered about; undefined where the account has no such cluster. */
  readonly answers: readonly { readonly candidate: ClusterToDescribe; readonly description: Description | undefined }[];
  readonly unseen: readonly UnseenPlace[];
  /** Number of clusters that the time did not suffice for. */
  readonly left: number;
}

/** Asks EKS about each of these clusters alone. A cluster that cannot be asked about stays as it is. */
export async function askClusters(
  candidates: readonly ClusterToDescribe[],
  { looker, hasTime }: { readonly looker: Looker; readonly hasTime: () => boolean },
  { inventory }: Pick<DiscoverPorts, "inventory">,
): Promise<AskedClusters> {
  const answers: { readonly candidate: ClusterToDescribe; readonly description: Description | undefined }[] = [];
  const unseen = new Map<string, UnseenPlace>();
  let left = 0;
  await runConcurrently(inTurns(candidates), askedAtOnce, async (candidate) => {
    const { accountId: account, region } = candidate.eks;
    if (!hasTime()) {
      left += 1;
      return;
    }
    try {
      answers.push({ candidate, description: await inventory.describe(candidate.eks, looker) });
    } catch (error) {
      unseen.set(`${account} ${region}`, unseenPlace({ account, region }, error));
    }
  });
  return { answers, unseen: [...unseen.values()], left };
}

/** Takes the accounts in turn, because each account limits its own rate of requests. */
function inTurns(candidates: readonly ClusterToDescribe[]): readonly ClusterToDescribe[] {
  const turns = new Map<string, number>();
  const placed = candidates.map((candidate) => {
    const turn = turns.get(candidate.eks.accountId) ?? 0;
    turns.set(candidate.eks.accountId, turn + 1);
    return { candidate, turn };
  });
  return placed.sort((a, b) => a.turn - b.turn).map(({ candidate }) => candidate);
}
