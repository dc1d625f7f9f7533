import * as z from "zod";
import { boundedList, boundedMap, boundedText } from "#shared/base/bounded.ts";
import { eksRoleSchema } from "#shared/fleet/kinds/cluster.ts";
import { installationMetadata, labelKeySchema, labelValueSchema, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { ownLabelPrefix } from "#shared/fleet/kinds/own-labels.ts";
import { clusterCountSchema, durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { valueName } from "#shared/fleet/kinds/values.ts";
import { zoneName } from "#shared/fleet/kinds/zone-name.ts";

const accountIdRule = 'must be an account id of 12 digits, in quotes: "111122223333"';
const accountId = z.string(accountIdRule).regex(/^\d{12}$/, accountIdRule);
const organizationUnit = z
  .string()
  .regex(
    /^(r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32})$/,
    "must be the id of an organizational unit, such as ou-ab12-cdefgh34, or of the root, such as r-ab12",
  );
const region = z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d{1,2}$/, "must be a region such as eu-west-1");

/** AWS's limits, which exceed those of a Kubernetes label. */
const tagKey = boundedText(128).min(1, "must not be empty");
const tagValue = boundedText(256);
const tagValues = boundedList(tagValue, 100).min(1, "must hold at least one value");
const tagExpression = z.discriminatedUnion("operator", [
  z.strictObject({ key: tagKey, operator: z.literal("In"), values: tagValues }),
  z.strictObject({ key: tagKey, operator: z.literal("NotIn"), values: tagValues }),
  z.strictObject({ key: tagKey, operator: z.literal("Exists") }),
  z.strictObject({ key: tagKey, operator: z.literal("DoesNotExist") }),
]);
const tagSelector = z
  .strictObject({
    matchLabels: boundedMap(tagKey, tagValue, 50).optional(),
    matchExpressions: boundedList(tagExpression, 50).optional(),
  })
  .refine(
    ({ matchLabels, matchExpressions }) => Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length > 0,
    "is empty; leave tags out for every cluster of the accounts and regions",
  );
export type TagSelector = z.infer<typeof tagSelector>;

const ownLabelKey = labelKeySchema.refine(
  (key) => !key.startsWith(ownLabelPrefix),
  `must not begin with ${ownLabelPrefix}, which Starling sets`,
);

const eksSchema = z
  .strictObject({
    accounts: boundedList(accountId, 1000).min(1, "must name at least one account").optional(),
    organization: z
      .strictObject({
        /** The management account of the organization, or a delegated one: the role may list accounts there. */
        account: accountId,
        /** Organizational units, with everything below them. */
        ous: boundedList(organizationUnit, 100).min(
          1,
          "must name at least one; the root's id stands for every account",
        ),
        exclude: boundedList(accountId, 1000).optional(),
      })
      .optional(),
    /**
     * A role in each account, assumed with the external id `<installation id>/discovery/<name of the
     * ClusterDiscovery>`.
     */
    role: eksRoleSchema,
    regions: boundedList(region, 50).min(1, "must name at least one region"),
    tags: tagSelector.optional(),
  })
  .refine(({ accounts, organization }) => (accounts === undefined) !== (organization === undefined), {
    message: "needs exactly one of accounts or organization",
  });

const labelsSchema = z
  .strictObject({
    /** Each label with the tag that it comes from. */
    fromTags: boundedMap(ownLabelKey, tagKey, 50).optional(),
    /** Each label with its allowed values; another value of its tag leaves the label as it was. */
    allowed: z
      .record(ownLabelKey, boundedList(labelValueSchema, 100).min(1, "must hold at least one value"))
      .refine((map) => Object.keys(map).length <= 50, "must have at most 50 members")
      .meta({ maxProperties: 50 })
      .optional(),
    set: boundedMap(ownLabelKey, labelValueSchema, 50).optional(),
  })
  .superRefine(({ fromTags = {}, allowed = {}, set = {} }, context) => {
    for (const label of Object.keys(allowed)) {
      if (Object.hasOwn(fromTags, label)) continue;
      context.addIssue({ code: "custom", path: ["allowed", label], message: "is about a label that fromTags lacks" });
    }
    for (const label of Object.keys(set)) {
      if (!Object.hasOwn(fromTags, label)) continue;
      context.addIssue({ code: "custom", path: ["set", label], message: "is in fromTags, too; keep one of them" });
    }
  });

const discoveredValuesSchema = z
  .strictObject({
    /** Tags that become values of the cluster, under the same name. */
    fromTags: boundedList(valueName, 100).min(1, "must name at least one tag").optional(),
    /** Each value with what its tag may hold; anything else leaves the value as it was. */
    allowed: z
      .record(valueName, boundedList(tagValue, 100).min(1, "must hold at least one value"))
      .refine((map) => Object.keys(map).length <= 100, "must have at most 100 members")
      .meta({ maxProperties: 100 })
      .optional(),
    /** Parameters of the cluster's account and region, directly below the path; they take precedence over tags. */
    ssm: z.strictObject({ path: boundedText(1000).min(1) }).optional(),
  })
  .refine(({ fromTags, ssm }) => fromTags !== undefined || ssm !== undefined, "needs fromTags, ssm or both")
  .superRefine(({ fromTags = [], allowed = {} }, context) => {
    for (const name of Object.keys(allowed)) {
      if (fromTags.includes(name)) continue;
      context.addIssue({ code: "custom", path: ["allowed", name], message: "is about a value that fromTags lacks" });
    }
  });

const goneSchema = z.strictObject({
  /**
   * How long the account must report the cluster as missing, without a break: an error is no answer, and another answer
   * ends it.
   */
  after: durationSchema({ minSeconds: 3600, maxSeconds: 30 * 86_400 }).default("24h"),
  /** Equivalent to `starling delete cluster NAME --cascade orphan`. */
  action: z.literal("Forget"),
  /** Limit within 24 hours; percentages are of the clusters that it has found, and round up. */
  maxPerDay: clusterCountSchema.default("5%"),
});

const vpcId = z.string().regex(/^vpc-[0-9a-f]{8,17}$/, "must be the id of a VPC, such as vpc-0a1b2c3d4e5f60718");

/** How Starling reaches the clusters, as in `spec.access` of a Cluster. */
const discoveredAccess = z
  .strictObject({
    role: eksRoleSchema.optional(),
    /** The zone of the clusters whose VPC is not in the table. */
    zone: zoneName.optional(),
    /** Zones by the VPC of the cluster. */
    zonesByVpc: boundedMap(vpcId, zoneName, 500).optional(),
  })
  .refine(
    ({ role, zone, zonesByVpc }) => (role ?? zone ?? zonesByVpc) !== undefined,
    "needs role, zone, zonesByVpc or several of them; or leave access out",
  )
  .refine(({ zonesByVpc = { some: "" } }) => Object.keys(zonesByVpc).length > 0, {
    message: "must name at least one VPC, or be left out",
    path: ["zonesByVpc"],
  });

export const clusterDiscoverySpec = z.strictObject({
  eks: eksSchema,
  interval: durationSchema({ minSeconds: 60, maxSeconds: 86_400 }).default("10m"),
  name: boundedText(200).min(1).default("{{ eks.name }}-{{ eks.accountId }}-{{ eks.region }}"),
  access: discoveredAccess.optional(),
  labels: labelsSchema.optional(),
  values: discoveredValuesSchema.optional(),
  /** Handling of clusters that their own account reports as missing. When absent, they stay, and are shown as missing. */
  gone: goneSchema.optional(),
});
export type ClusterDiscoverySpec = z.infer<typeof clusterDiscoverySpec>;

export const clusterDiscoveryDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("ClusterDiscovery"),
  metadata: installationMetadata,
  spec: clusterDiscoverySpec,
});
