import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import type { AccountRegion, Looker } from "#shared/adapters/aws/eks-inventory.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { discoveryIdentity } from "#shared/fleet/discovery/discovery-identity.ts";
import type { SeenPlace } from "#shared/fleet/discovery/plan-scan.ts";
import { requiredTag } from "#shared/fleet/discovery/tagged-labels.ts";
import { partitionOf } from "#shared/fleet/eks-arn.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { sharedParameterPath } from "#shared/fleet/kinds/parameter-path.ts";
import type { DiscoveryRow, UnseenPlace } from "#shared/fleet/rows/discovery-rows.ts";

/** Places that are listed at once; each mostly waits for an answer. */
const placesAtOnce = 20;
/** Longest text that is kept of a service's answer. */
const maxMessage = 500;

export interface Seen {
  readonly accounts: number;
  readonly places: readonly SeenPlace[];
  readonly unseen: readonly UnseenPlace[];
  /** The first place that the time did not suffice for. */
  readonly resume?: string;
}

export function lookerOf({ name, spec }: Pick<DiscoveryRow, "name" | "spec">, installation: string): Looker {
  return { role: spec.eks.role.name, externalId: discoveryIdentity(installation, name) };
}

/**
 * Lists the clusters of each account and region. A place that cannot be seen does not count as empty, and does not stop
 * the others from being listed.
 * @throws StarlingError when the accounts of the organization cannot be listed: then nothing is known of any account.
 */
export async function seePlaces(
  { spec, status }: Pick<DiscoveryRow, "spec" | "status">,
  { looker, hasTime }: { readonly looker: Looker; readonly hasTime: () => boolean },
  { inventory }: Pick<DiscoverPorts, "inventory">,
): Promise<Seen> {
  const { organization, accounts: named = [], regions } = spec.eks;
  const excluded = new Set(organization?.exclude ?? []);
  const listed = organization === undefined ? named : await inventory.accountsOf(organization, looker);
  const accounts = [...new Set(listed)].filter((account) => !excluded.has(account));
  // The order is region by region, so that simultaneous requests go to different accounts.
  const all = [...new Set(regions)].flatMap((region) => accounts.map((account) => ({ account, region })));
  const from = all.findIndex((place) => placeText(place) === status.resume);
  const places = all.slice(Math.max(0, from));
  const seen: SeenPlace[] = [];
  // The places that were scanned before the last scan ended come last.
  const unseen: UnseenPlace[] = from > 0 ? [...(status.unseen ?? [])] : [];
  const left: string[] = [];
  await runConcurrently(places, placesAtOnce, async (place) => {
    if (!hasTime()) {
      left.push(placeText(place));
      return;
    }
    const scan = await seePlace(place, { spec, looker, inventory });
    seen.push(scan.place);
    unseen.push(...scan.unseen);
  });
  const order = (a: AccountRegion, b: AccountRegion) => (placeText(a) < placeText(b) ? -1 : 1);
  return {
    accounts: accounts.length,
    places: seen.sort(order),
    unseen: withoutRegionsOfAll(unseen, regions),
    ...defined({ resume: left[0] }),
  };
}

export function placeText({ account, region }: AccountRegion): string {
  return `${account} ${region}`;
}

interface Question extends Pick<DiscoverPorts, "inventory"> {
  readonly spec: ClusterDiscoverySpec;
  readonly looker: Looker;
}

type SeenInPlace = { readonly place: SeenPlace; readonly unseen: readonly UnseenPlace[] };

/** The clusters of a place, and their tags where the place has clusters. */
async function seePlace(place: AccountRegion, question: Question): Promise<SeenInPlace> {
  const listed = await listPlace(place, question);
  const { ssm } = question.spec.values ?? {};
  if (ssm === undefined || (listed.place.clusters ?? []).length === 0) return listed;
  try {
    const { path, isWhole } = sharedParameterPath(ssm.path);
    const below = isWhole ? "one level" : "all levels";
    const parameters = await question.inventory.parameters(place, question.looker, { path, below });
    return { ...listed, place: { ...listed.place, parameters } };
  } catch (error) {
    return { ...listed, unseen: [...listed.unseen, unseenPlace(place, error)] };
  }
}

async function listPlace(place: AccountRegion, { spec, looker, inventory }: Question): Promise<SeenInPlace> {
  const filter = requiredTag(spec.eks.tags);
  const [tags, names] = await Promise.allSettled([
    inventory.tags(place, looker, filter),
    // Every cluster that has the tag is in the list for the tag.
    filter === undefined ? inventory.names(place, looker) : [],
  ]);
  const failed = [names, tags].find((each) => each.status === "rejected");
  const unseen = failed === undefined ? [] : [unseenPlace(place, failed.reason)];
  const known = tags.status === "fulfilled" ? { tags: tags.value } : {};
  if (names.status === "rejected") return { place: { ...place }, unseen };
  const prefix = `arn:${partitionOf(place.region)}:eks:${place.region}:${place.account}:cluster/`;
  if (filter === undefined)
    return { place: { ...place, clusters: names.value.map((name) => prefix + name), ...known }, unseen };
  const clusters = tags.status === "fulfilled" ? { clusters: [...tags.value.keys()] } : {};
  return { place: { ...place, ...clusters, ...known }, unseen };
}

export function unseenPlace({ account, region }: AccountRegion, error: unknown): UnseenPlace {
  return { account, region, code: errorCode(error), message: excerpt(errorMessage(error), maxMessage) };
}

/** A problem of the account itself is reported once. */
function withoutRegionsOfAll(unseen: readonly UnseenPlace[], regions: readonly string[]): readonly UnseenPlace[] {
  const sorted = [...unseen].sort((a, b) => (`${a.account} ${a.region}` < `${b.account} ${b.region}` ? -1 : 1));
  const same = Map.groupBy(sorted, ({ account, message }) => JSON.stringify([account, message]));
  return [...same.values()].flatMap((each) => {
    const [first] = each;
    if (first === undefined || regions.length === 1 || each.length < regions.length) return each;
    const { region: _region, ...account } = first;
    return [account];
  });
}
