import { DescribeClusterCommand, type EKSClient, paginateListClusters } from "@aws-sdk/client-eks";
import {
  type OrganizationsClient,
  paginateListAccountsForParent,
  paginateListOrganizationalUnitsForParent,
} from "@aws-sdk/client-organizations";
import { paginateGetResources, type ResourceGroupsTaggingAPIClient } from "@aws-sdk/client-resource-groups-tagging-api";
import { paginateGetParametersByPath, type SSMClient } from "@aws-sdk/client-ssm";
import type { STSClient } from "@aws-sdk/client-sts";
import { inventoryError, isMissingInEks } from "#shared/adapters/aws/inventory-error.ts";
import { RoleSessions, type SessionCredentials } from "#shared/adapters/aws/role-sessions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import type { Parameter, Parameters } from "#shared/fleet/discovery/parameters.ts";
import { type EksArn, parseEksArn, partitionOf } from "#shared/fleet/eks-arn.ts";

export interface AccountRegion {
  readonly account: string;
  readonly region: string;
}

/** The role that scans: the role with this name in each account. */
export interface Looker {
  readonly role: string;
  readonly externalId: string;
}

type Tags = Readonly<Record<string, string>>;

/** The answer of EKS about a cluster. */
export interface DescribedCluster {
  readonly status: string;
  readonly version: string;
  readonly tags: Tags;
  readonly createdAt?: string;
  readonly vpcId?: string;
}

interface Scope {
  readonly region: string;
  readonly credentials: SessionCredentials;
}

export interface EksInventoryOptions {
  readonly sts: STSClient;
  readonly eks: (scope: Scope) => EKSClient;
  readonly tagging: (scope: Scope) => ResourceGroupsTaggingAPIClient;
  readonly organizations: (scope: Scope) => OrganizationsClient;
  readonly ssm: (scope: Scope) => SSMClient;
  readonly clock: Clock;
  readonly installation: string;
  /** Starling's own region. Sessions of its STS are valid in every region that the account has enabled. */
  readonly region: string;
}

/** The most items that a page of the services contains. */
const pageSize = 100;
/** The most parameters that a page of Parameter Store contains. */
const parametersInPage = 10;

/**
 * Lists the EKS clusters and parameters of accounts and regions. An error never becomes an empty list. A cluster is
 * missing only if its own account says so when it is asked about this cluster.
 */
export class EksInventory {
  readonly #options: EksInventoryOptions;
  readonly #sessions: RoleSessions;

  constructor(options: EksInventoryOptions) {
    this.#options = options;
    this.#sessions = new RoleSessions({
      sts: options.sts,
      clock: options.clock,
      sessionName: `starling-${options.installation}`,
      caller: { name: "discover function", settings: "context clusterAccounts and organization" },
    });
  }

  /** The names of all clusters of an account in a region. @throws StarlingError of `inventoryError` */
  async names(place: AccountRegion, looker: Looker): Promise<readonly string[]> {
    return this.#ask(place, { looker, action: "eks:ListClusters" }, async (scope) => {
      const client = this.#options.eks(scope);
      const names: string[] = [];
      try {
        for await (const page of paginateListClusters({ client, pageSize }, {})) names.push(...(page.clusters ?? []));
      } finally {
        client.destroy();
      }
      return names;
    });
  }

  /** The tags of clusters that have this tag, among those that have or had tags. They may be some seconds old. */
  async tags(
    place: AccountRegion,
    looker: Looker,
    filter?: { readonly key: string; readonly values: readonly string[] },
  ): Promise<ReadonlyMap<string, Tags>> {
    return this.#ask(place, { looker, action: "tag:GetResources" }, async (scope) => {
      const client = this.#options.tagging(scope);
      const found = new Map<string, Tags>();
      const TagFilters = filter === undefined ? undefined : [{ Key: filter.key, Values: [...filter.values] }];
      const input = { ResourceTypeFilters: ["eks:cluster"], ResourcesPerPage: pageSize, ...defined({ TagFilters }) };
      try {
        for await (const { ResourceTagMappingList = [] } of paginateGetResources({ client }, input)) {
          for (const { ResourceARN = "", Tags = [] } of ResourceTagMappingList) {
            if (parseEksArn(ResourceARN) !== undefined) found.set(ResourceARN, tagsOf(Tags));
          }
        }
      } finally {
        client.destroy();
      }
      return found;
    });
  }

  /** All parameters below a path, by their full names. The list is always complete. Nothing is decrypted. */
  async parameters(
    place: AccountRegion,
    looker: Looker,
    { path, below }: { readonly path: string; readonly below: "one level" | "all levels" },
  ): Promise<Parameters> {
    return this.#ask(place, { looker, action: `ssm:GetParametersByPath of ${path}` }, async (scope) => {
      const client = this.#options.ssm(scope);
      const found = new Map<string, Parameter>();
      const input = { Path: path, Recursive: below === "all levels", WithDecryption: false };
      try {
        for await (const { Parameters } of paginateGetParametersByPath({ client, pageSize: parametersInPage }, input)) {
          // Without parameters, the answer has an empty list. An answer without a list is invalid.
          if (Parameters === undefined) throw new Error("the answer has no list of parameters");
          for (const { Name, Type: type, Value: value } of Parameters) {
            if (Name === undefined || type === undefined || value === undefined)
              throw new Error("the answer has a parameter without name, type or value");
            found.set(Name, { type, value: type === "SecureString" ? "" : value });
          }
        }
      } finally {
        client.destroy();
      }
      return found;
    });
  }

  /** @returns undefined only if the cluster's account says that the cluster does not exist. */
  async describe({ name, accountId, region, arn }: EksArn, looker: Looker): Promise<DescribedCluster | undefined> {
    const place = { account: accountId, region };
    return this.#ask(place, { looker, action: "eks:DescribeCluster" }, async (scope) => {
      const client = this.#options.eks(scope);
      try {
        const { cluster } = await client.send(new DescribeClusterCommand({ name }));
        if (cluster?.arn !== arn) throw new Error(`asked for ${arn}, it answers of ${cluster?.arn}`);
        const { status = "UNKNOWN", version = "", tags = {}, createdAt, resourcesVpcConfig } = cluster;
        const vpcId = resourcesVpcConfig?.vpcId;
        return { status, version, tags, ...defined({ createdAt: createdAt?.toISOString(), vpcId }) };
      } catch (error) {
        if (isMissingInEks(error)) return undefined;
        throw error;
      } finally {
        client.destroy();
      }
    });
  }

  /** The active accounts in these units and in all units below them. */
  async accountsOf(
    organization: { readonly account: string; readonly ous: readonly string[] },
    looker: Looker,
  ): Promise<readonly string[]> {
    const place = { account: organization.account, region: this.#options.region };
    const action = "organizations:ListAccountsForParent and organizations:ListOrganizationalUnitsForParent";
    return this.#ask(place, { looker, action }, async (scope) => {
      const client = this.#options.organizations(scope);
      const accounts = new Set<string>();
      const units = [...organization.ous];
      try {
        // The list grows during the loop. A unit has one parent, so that the loop ends.
        for (const ParentId of units) {
          for await (const { Accounts = [] } of paginateListAccountsForParent({ client }, { ParentId })) {
            for (const { Id, Status, State } of Accounts) {
              if (Id !== undefined && (State ?? Status) === "ACTIVE") accounts.add(Id);
            }
          }
          for await (const page of paginateListOrganizationalUnitsForParent({ client }, { ParentId })) {
            for (const { Id } of page.OrganizationalUnits ?? []) if (Id !== undefined) units.push(Id);
          }
        }
      } finally {
        client.destroy();
      }
      return [...accounts].sort();
    });
  }

  async #ask<T>(
    place: AccountRegion,
    { looker, action }: { readonly looker: Looker; readonly action: string },
    ask: (scope: Scope) => Promise<T>,
  ): Promise<T> {
    const role = {
      arn: `arn:${partitionOf(place.region)}:iam::${place.account}:role/${looker.role}`,
      externalId: looker.externalId,
    };
    const credentials = await this.#sessions.credentials({ role });
    try {
      return await ask({ region: place.region, credentials });
    } catch (error) {
      throw inventoryError(error, { place, role: role.arn, action });
    }
  }
}

function tagsOf(tags: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[]): Tags {
  return Object.fromEntries(tags.map(({ Key = "", Value = "" }) => [Key, Value]));
}
