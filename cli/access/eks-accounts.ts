/** Access to EKS in several accounts, with the caller's own rights or with a role of each account. */
import type { EKSClient } from "@aws-sdk/client-eks";
import type { AwsKeys } from "#cli/session/api-client.ts";
import { CliFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { type EksArn, parseEksArn, partitionOf } from "#shared/fleet/eks-arn.ts";

export interface AccountOptions {
  /** Name of a role that each account has, and that the caller may assume. */
  readonly assumeRole?: string;
}

/** Clusters at once: DescribeCluster has a rate for each account and region. */
const concurrency = 8;

/** Gets the keys of each account once. */
export class EksAccounts {
  readonly #session: Pick<Session, "awsKeys">;
  readonly #assumeRole: string | undefined;
  readonly #keys = new Map<string, Promise<AwsKeys>>();

  constructor(session: Pick<Session, "awsKeys">, { assumeRole }: AccountOptions) {
    this.#session = session;
    this.#assumeRole = assumeRole;
  }

  /** @throws CliFailure when the role cannot be assumed. */
  keys(account: string, region: string): Promise<AwsKeys> {
    const known = this.#keys.get(account);
    if (known !== undefined) return known;
    const asked = this.#ask(account, region);
    this.#keys.set(account, asked);
    return asked;
  }

  async #ask(account: string, region: string): Promise<AwsKeys> {
    const masterCredentials = await this.#session.awsKeys();
    if (this.#assumeRole === undefined || account === "") return masterCredentials;
    const { fromTemporaryCredentials } = await import("@aws-sdk/credential-providers");
    const arn = `arn:${partitionOf(region)}:iam::${account}:role/${this.#assumeRole}`;
    const params = { RoleArn: arn, RoleSessionName: "starling-cluster-add" };
    try {
      return await fromTemporaryCredentials({ params, masterCredentials, clientConfig: { region } })();
    } catch (error) {
      throw new CliFailure(`cannot assume ${arn}: ${errorMessage(error)}`, {
        exit: "unknown",
        next: "aws sts get-caller-identity   (the role of --assume-role must trust this principal)",
      });
    }
  }

  /** Runs `work` with a client for the account and region, and destroys the client. */
  async using<T>(place: Pick<EksArn, "accountId" | "region">, work: (client: EKSClient) => Promise<T>): Promise<T> {
    const { EKSClient: Client } = await import("@aws-sdk/client-eks");
    const credentials = await this.keys(place.accountId, place.region);
    const client = new Client({ region: place.region, credentials, retryMode: "adaptive", maxAttempts: 5 });
    try {
      return await work(client);
    } finally {
      client.destroy();
    }
  }
}

export interface TagSearch {
  readonly tags: ReadonlyMap<string, string>;
  /** Empty: the caller's account. */
  readonly accounts: readonly string[];
  readonly regions: readonly string[];
}

export interface FoundCluster extends EksArn {
  /** In EKS's form: `1.34`. */
  readonly kubeVersion?: string;
}

export interface FoundClusters {
  readonly clusters: readonly FoundCluster[];
  /** Accounts and regions that could not be asked, and why. Their clusters are unknown. */
  readonly unasked: readonly string[];
}

/** The clusters that have all of these tags. All accounts and regions are asked, even if one does not answer. */
export async function clustersByTags(accounts: EksAccounts, search: TagSearch): Promise<FoundClusters> {
  const clusters: FoundCluster[] = [];
  const unasked: string[] = [];
  const desired = search.accounts.length === 0 ? [""] : search.accounts;
  const places = desired.flatMap((accountId) => search.regions.map((region) => ({ accountId, region })));
  await runConcurrently(places, concurrency, async (place) => {
    try {
      clusters.push(...(await clustersIn(accounts, place, search.tags)));
    } catch (error) {
      unasked.push(
        `${place.accountId === "" ? "" : `account ${place.accountId}, `}${place.region}: ${errorMessage(error)}`,
      );
    }
  });
  return { clusters: clusters.sort((a, b) => (a.arn < b.arn ? -1 : 1)), unasked: unasked.sort() };
}

async function clustersIn(
  accounts: EksAccounts,
  place: Pick<EksArn, "accountId" | "region">,
  tags: ReadonlyMap<string, string>,
): Promise<readonly FoundCluster[]> {
  const { DescribeClusterCommand, paginateListClusters } = await import("@aws-sdk/client-eks");
  return accounts.using(place, async (client) => {
    const names: string[] = [];
    for await (const page of paginateListClusters({ client }, {})) names.push(...(page.clusters ?? []));
    const found: FoundCluster[] = [];
    await runConcurrently(names, concurrency, async (name) => {
      const { cluster } = await client.send(new DescribeClusterCommand({ name }));
      const arn = parseEksArn(cluster?.arn ?? "");
      const has = [...tags].every(([key, value]) => cluster?.tags?.[key] === value);
      if (arn !== undefined && has) found.push({ ...arn, ...defined({ kubeVersion: cluster?.version }) });
    });
    return found;
  });
}

/** `env=prod,team=web`. @returns undefined for a text of another form. */
export function parseTags(text: string): ReadonlyMap<string, string> | undefined {
  const tags = new Map<string, string>();
  for (const pair of text.split(",")) {
    const [, key, value] = /^\s*([^=!]+?)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (key === undefined || value === undefined || tags.has(key)) return undefined;
    tags.set(key, value);
  }
  return tags;
}
