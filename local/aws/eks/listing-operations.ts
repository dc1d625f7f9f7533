/**
 * Operations of other services than EKS that list clusters and accounts: the Resource Groups Tagging API, and
 * Organizations.
 */
import type { EksCluster, EksRegister } from "#local/aws/eks/eks-register.ts";
import { StsRefusal } from "#local/aws/iam/sts-operations.ts";
import { defined } from "#shared/base/defined.ts";

/** An organizational unit or root, by its id. */
export interface OrganizationUnit {
  readonly units: readonly string[];
  readonly accounts: readonly { readonly id: string; readonly state: "ACTIVE" | "SUSPENDED" }[];
}

export interface LocalOrganization {
  /** The only account that may list the organization. */
  readonly account: string;
  readonly units: ReadonlyMap<string, OrganizationUnit>;
}

export interface ListingRequest {
  /** The operation in `X-Amz-Target`, without the service. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The account of the signature. */
  readonly accountId: string;
  readonly region: string;
}

const mostResources = 100;
/** Organizations returns at most this many per page. */
const mostMembers = 20;

interface GetResourcesInput {
  readonly PaginationToken?: string;
  readonly ResourcesPerPage?: number;
  readonly ResourceTypeFilters?: readonly string[];
  readonly TagFilters?: readonly { readonly Key: string; readonly Values?: readonly string[] }[];
}

/** `GetResources`. Returns only clusters that have a tag. @throws StsRefusal */
export function taggedResources(
  { operation, input, accountId, region }: ListingRequest,
  register: EksRegister,
): object {
  const {
    ResourcesPerPage = mostResources,
    TagFilters = [],
    ResourceTypeFilters = [],
    ...rest
  } = input as GetResourcesInput;
  if (operation !== "GetResources") throw new StsRefusal("UnknownOperationException", operation, 400);
  if (ResourcesPerPage < 1 || ResourcesPerPage > mostResources || TagFilters.length > 50) {
    throw new StsRefusal(
      "InvalidParameterException",
      "ResourcesPerPage needs to be 1-100, and TagFilters 50 at most.",
      400,
    );
  }
  const isMeant =
    ResourceTypeFilters.length === 0 || ResourceTypeFilters.some((type) => type === "eks" || type === "eks:cluster");
  const tagged = isMeant ? register.list({ accountId, region }).filter(({ tags }) => Object.keys(tags).length > 0) : [];
  const matching = tagged.filter((cluster) => TagFilters.every((filter) => hasTag(cluster, filter)));
  const { page, next = "" } = pageOf(matching, {
    after: rest.PaginationToken,
    size: ResourcesPerPage,
    key: ({ arn }) => arn,
  });
  return {
    PaginationToken: next,
    ResourceTagMappingList: page.map(({ arn, tags }) => ({
      ResourceARN: arn,
      Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
    })),
  };
}

function hasTag(
  { tags }: EksCluster,
  { Key, Values = [] }: { readonly Key: string; readonly Values?: readonly string[] },
): boolean {
  const value = Object.hasOwn(tags, Key) ? tags[Key] : undefined;
  return value !== undefined && (Values.length === 0 || Values.includes(value));
}

interface ListInput {
  readonly ParentId?: string;
  readonly NextToken?: string;
}

/** `ListAccountsForParent` and `ListOrganizationalUnitsForParent`. @throws StsRefusal */
export function organizationMembers(
  { operation, input, accountId }: ListingRequest,
  organization: LocalOrganization | undefined,
): object {
  const { ParentId = "", NextToken: after } = input as ListInput;
  if (organization?.account !== accountId) {
    throw new StsRefusal("AWSOrganizationsNotInUseException", "Your account is not a member of an organization.", 400);
  }
  const parent = organization.units.get(ParentId);
  if (parent === undefined)
    throw new StsRefusal("ParentNotFoundException", `You specified a parent that doesn't exist: ${ParentId}`, 400);
  if (operation === "ListAccountsForParent") {
    const { page, next } = pageOf(parent.accounts, { after, size: mostMembers, key: ({ id }) => id });
    const Accounts = page.map(({ id, state }) => ({ Id: id, Status: state, State: state }));
    return { Accounts, ...defined({ NextToken: next }) };
  }
  if (operation === "ListOrganizationalUnitsForParent") {
    const { page, next } = pageOf(parent.units, { after, size: mostMembers, key: (id) => id });
    return { OrganizationalUnits: page.map((Id) => ({ Id })), ...defined({ NextToken: next }) };
  }
  throw new StsRefusal("UnknownOperationException", operation, 400);
}

export function pageOf<T>(
  items: readonly T[],
  {
    after,
    size,
    key,
  }: { readonly after: string | undefined; readonly size: number; readonly key: (item: T) => string },
): { readonly page: readonly T[]; readonly next?: string } {
  const sorted = [...items].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  const last = after === undefined || after === "" ? "" : Buffer.from(after, "base64url").toString();
  const rest = sorted.filter((item) => key(item) > last);
  const page = rest.slice(0, size);
  const end = page.at(-1);
  return {
    page,
    ...(end !== undefined && rest.length > size ? { next: Buffer.from(key(end)).toString("base64url") } : {}),
  };
}
