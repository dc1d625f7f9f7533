/** The setting `zones`: the places besides `home` from which clusters are reached. */
import { isIPv4 } from "node:net";
import { Token } from "aws-cdk-lib";
import * as z from "zod";
import { nearestName } from "#shared/base/nearest-name.ts";
import { clusterPattern } from "#shared/fleet/kinds/cluster-pattern.ts";
import { homeZone, zoneName } from "#shared/fleet/kinds/zone-name.ts";

/**
 * An id that is known, or that another CDK app knows later: as a token, or as one of a list that is a token. Until the CDK has looked
 * a VPC up, its subnets are p-12345 and the like, and an error would keep the CDK from looking.
 */
function isId(text: string, kind: string): boolean {
  if (Token.isUnresolved(text) || Token.isUnresolved([text])) return true;
  return new RegExp(`^${kind}-[0-9a-f]{8,17}$`).test(text) || (kind === "subnet" && /^[ps]-(12345|67890)$/.test(text));
}

/** Every message says what a value must be, because `zoneProblem` puts it behind "expected". */
const idOf = (kind: string) => {
  const desired = `an id such as ${kind}-0a1b2c3d4e5f60718`;
  return z.string(desired).refine((text) => isId(text, kind), desired);
};

const idsOf = (kind: string, { what, most }: { readonly what: string; readonly most: number }) => {
  const desired = `a list of 1 to ${most} ids of ${what}, each once, such as ["${kind}-0a1b2c3d4e5f60718"]`;
  return z
    .array(idOf(kind), desired)
    .min(1, desired)
    .max(most, desired)
    .refine((ids) => new Set(ids).size === ids.length, desired);
};

const range =
  "an IPv4 range from /16 to /24 that a network may have and that begins at its first address, such as 10.250.0.0/24 (the default), or no value";
const gateways = "1 or 2, or no value (1)";
const clusterCount = "a whole number of clusters from 1 to 999999, or no value (a fair share of setting clusters)";
const newNetworkForm = 'an object such as {"cidr": "10.250.0.0/24", "natGateways": 1}, or {}';

const newNetwork = z.strictObject(
  {
    /** IPv4 range of the new VPC. */
    cidr: z.string(range).refine(isRange, range).default("10.250.0.0/24"),
    /** NAT gateways, each with a fixed address. */
    natGateways: z.int(gateways).min(1, gateways).max(2, gateways).default(1),
  },
  newNetworkForm,
);

/** VPCs of all zones together: the environment of a function has 4 KB. */
const mostVpcs = 50;

const zoneForm =
  'an object such as {"name": "fixed", "vpc": {}} or {"name": "spoke", "subnets": ["subnet-0a1b2c3d4e5f60718"], "securityGroups": ["sg-0a1b2c3d4e5f60718"]}';
const nameForm = `a name of at most 18 small letters, digits and dashes, a letter first and no dash last, and not ${homeZone}, which every installation has`;

const accountForm = 'an account id of 12 digits as a text, such as "444455556666"';
const regionForm = "a region, such as eu-west-1";
const namesForm =
  'a list of 1 to 10 patterns of the names of Clusters, each once, such as ["eu-*"], with * for any part of a name: small letters, digits and dashes';
const quotaForm = "a whole number of executions from 4 to 999999, or no value (10)";
const topicForm = "the ARN of an SNS topic, such as arn:aws:sns:eu-west-1:444455556666:on-call";

const account = z.string(accountForm).regex(/^\d{12}$/, accountForm);
const region = z.string(regionForm).regex(/^[a-z]{2,}(-[a-z]+)+-\d{1,2}$/, regionForm);
const roleForm =
  "the ARN of a role of Starling's account, such as the former output Zone<Name>Role of the control stack, or no value (a new role)";

const zone = z
  .strictObject(
    {
      name: z
        .string(nameForm)
        .refine((name) => zoneName.safeParse(name).success, nameForm)
        .refine((name) => name !== homeZone, nameForm),
      /** How many clusters of the fleet it reaches. */
      clusters: z.int(clusterCount).min(1, clusterCount).max(999_999, clusterCount).optional(),
      /** The account and the region of a zone that is elsewhere. One of them is enough. */
      account: account.optional(),
      region: region.optional(),
      /** Patterns of the names of the clusters that the zone may serve. */
      clusterNames: z
        .array(z.string(namesForm), namesForm)
        .min(1, namesForm)
        .max(10, namesForm)
        .refine((names) => names.every((each) => clusterPattern.safeParse(each).success), namesForm)
        .refine((names) => new Set(names).size === names.length, namesForm)
        .optional(),
      /** Lambda's quota of the account and region of a zone that is elsewhere, or the zone's part of it. */
      concurrency: z.int(quotaForm).min(4, quotaForm).max(999_999, quotaForm).optional(),
      /** Topic of the region of a zone that is elsewhere, for the zone's alarm. */
      alarmTopicArn: z
        .string(topicForm)
        .regex(/^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}$/, topicForm)
        .optional(),
      /** A new VPC with private subnets, and with NAT gateways whose addresses are fixed. */
      vpc: newNetwork.optional(),
      /** Existing subnets, with security groups of their VPC. */
      subnets: idsOf("subnet", { what: "subnets", most: 16 }).optional(),
      securityGroups: idsOf("sg", { what: "security groups", most: 5 }).optional(),
      /** VPCs whose clusters this zone reaches: ClusterDiscoveries put clusters into zones by them. */
      vpcs: idsOf("vpc", { what: "VPCs", most: mostVpcs }).optional(),
      /** An existing role for its workers, which the roles of clusters trust. */
      role: z.string(roleForm).refine(isRole, roleForm).optional(),
    },
    zoneForm,
  )
  .superRefine((each, context) => {
    const { vpc, subnets, securityGroups, clusterNames, concurrency, alarmTopicArn } = each;
    const refuse = (path: readonly string[], message: string) =>
      context.addIssue({ code: "custom", path: [...path], message, params: { whole: true } });
    const isRemote = isElsewhere(each);
    if (isRemote && clusterNames === undefined)
      refuse(
        ["clusterNames"],
        `is missing beside account or region, because such a zone may read and write what belongs to some clusters only; add ${namesForm}`,
      );
    for (const [field, value] of Object.entries({ concurrency, alarmTopicArn }))
      if (!isRemote && value !== undefined)
        refuse(
          [field],
          `is ${value}, and only a zone with account or region has its own; leave it out, or use setting ${field}`,
        );
    if (isRemote && each.role !== undefined)
      refuse(
        ["role"],
        `is ${each.role}, and the role of a zone with account or region has a fixed name, <installation>-zone-<name>, which stays the same; leave it out`,
      );
    if (!isRemote && vpc === undefined && subnets === undefined)
      refuse([], "has no network; add vpc (a new network, such as {}) or subnets (existing ones)");
    if (vpc !== undefined && subnets !== undefined)
      refuse(["subnets"], "stands beside vpc, which makes subnets of its own; leave one of them out");
    if (subnets !== undefined && securityGroups === undefined)
      refuse(
        ["securityGroups"],
        "is missing beside subnets; add security groups of the same VPC that let requests out to the API servers",
      );
    if (vpc !== undefined && securityGroups !== undefined)
      refuse(["securityGroups"], "stands beside vpc, which gets a security group of its own; leave it out");
  });

/** With so many, the control stack stays below the 500 resources that CloudFormation allows. */
const mostZones = 10;
const listForm = `a list of at most ${mostZones} zones as JSON, each ${zoneForm}`;

const zoneList = z.array(zone, listForm).superRefine((zones, context) => {
  if (zones.length > mostZones)
    context.addIssue({
      code: "custom",
      message: `has ${zones.length} zones, and at most ${mostZones} fit into the control stack; leave some out, or let one zone reach more clusters`,
      params: { whole: true },
    });
  const vpcs = zones.flatMap((each) => each.vpcs ?? []);
  if (vpcs.length > mostVpcs)
    context.addIssue({
      code: "custom",
      message: `has ${vpcs.length} VPCs, and at most ${mostVpcs} fit into all zones together; name the others in spec.access.zonesByVpc of ClusterDiscoveries`,
      params: { whole: true },
    });
  for (const [index, { name, subnets, securityGroups, role, vpcs: own = [] }] of zones.entries()) {
    const before = zones.slice(0, index);
    const refuse = (field: string, message: string) =>
      context.addIssue({ code: "custom", path: [index, field], message, params: { whole: true } });
    // The outputs of the stack are named after zones, without dashes.
    const [namesake] = before.filter((each) => each.name.replaceAll("-", "") === name.replaceAll("-", ""));
    if (namesake?.name === name)
      refuse("name", `is ${name}, which zones[${zones.indexOf(namesake)}] has, too; give each zone a name of its own`);
    else if (namesake !== undefined)
      refuse("name", `is ${name}, and differs from ${namesake.name} by dashes only; choose another name`);
    for (const vpc of own) {
      const other = before.find((each) => each.vpcs?.includes(vpc));
      if (other !== undefined)
        refuse("vpcs", `has ${vpc}, which zone ${other.name} has, too; leave it to the zone that reaches its clusters`);
    }
    const sharer = role === undefined ? undefined : before.find((each) => each.role === role);
    if (sharer !== undefined)
      refuse(
        "role",
        `is ${role}, which zone ${sharer.name} has, too; give each zone a role of its own, because the roles of clusters trust one zone by it`,
      );
    const [twin] = before.filter(
      (each) => each.name !== name && sameSet(each.subnets, subnets) && sameSet(each.securityGroups, securityGroups),
    );
    if (subnets !== undefined && twin !== undefined)
      refuse(
        "subnets",
        `are those of zone ${twin.name}, with the same securityGroups, so that both zones reach the same clusters; leave one zone out`,
      );
  }
});

/** The value of cdk.json or of props, or its JSON from the command line. */
export const zonesSchema = z
  .custom<string | z.input<typeof zoneList>>()
  .transform((given, context): unknown => {
    if (typeof given !== "string") return given;
    try {
      return JSON.parse(given);
    } catch (error) {
      context.addIssue({ code: "custom", message: `is no JSON (${(error as Error).message})`, params: { json: true } });
      return z.NEVER;
    }
  })
  .pipe(zoneList);

export type ZoneSetting = z.output<typeof zone>;

/** A zone of another account or region, which has a stack of its own there. */
export function isElsewhere({ account, region }: Pick<ZoneSetting, "account" | "region">): boolean {
  return account !== undefined || region !== undefined;
}

const homeForm =
  'an object such as {"account": "111122223333", "region": "eu-central-1", "table": "starling-state-Table…", "bucket": "starling-state-blobs…"}: where Starling is, and the outputs TableName and BlobsName of its state stack';

const tableForm = "the name of the table of Starling, output TableName of the state stack";
const bucketForm = "the name of the bucket of Starling, output BlobsName of the state stack";

const homeObject = z.strictObject(
  {
    account: account,
    region: region,
    table: z.string(tableForm).regex(/^[\w.-]{3,255}$/, tableForm),
    bucket: z.string(bucketForm).regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, bucketForm),
  },
  homeForm,
);

/** The setting `home`, as an object or as its JSON: what zones in other accounts and regions know of the installation. */
export const homeSchema = z
  .custom<string | z.input<typeof homeObject>>()
  .transform((given) => (typeof given === "string" ? parsed(given) : given))
  .pipe(homeObject);

export { homeForm };

/** The problems of an issue of the setting `home`: the field, its value and the remedy. @param shown - writes a value. */
export function homeProblem(
  issue: z.core.$ZodIssue,
  { given, shown }: { readonly given: unknown; readonly shown: (value: unknown) => string },
): readonly string[] {
  if (issue.code === "unrecognized_keys") {
    const names = Object.keys(homeObject.shape);
    return issue.keys.map((key) => `setting home has no field ${key}; ${fieldRemedy(key, names)}`);
  }
  const [, field] = issue.path;
  if (field === undefined) return [`setting home is ${shown(given)}; expected ${homeForm}`];
  const object = (typeof given === "string" ? parsed(given) : given) as Record<PropertyKey, unknown>;
  return [`setting home.${String(field)} ${stateOf(object[field], shown)}; expected ${issue.message}`];
}

/** The knowledge of a zone elsewhere about the installation: its account and region, its table and its bucket. */
export type HomeSetting = z.output<typeof homeObject>;

/** The account and region of a zone that is elsewhere. */
export interface Place {
  readonly account: string;
  readonly region: string;
}

/** The zones that are elsewhere, each with its place. Checked settings have `home` then. */
export function zonesElsewhere({ zones, home }: ZonesAndHome): readonly (ZoneSetting & Place)[] {
  return home === undefined ? [] : zones.filter(isElsewhere).map((each) => ({ ...each, ...placeOf(each, home) }));
}

interface ZonesAndHome {
  readonly zones: readonly ZoneSetting[];
  readonly home?: HomeSetting | undefined;
}

function placeOf({ account, region }: ZoneSetting, home: HomeSetting): Place {
  return { account: account ?? home.account, region: region ?? home.region };
}

/** Zones elsewhere that cannot work with this installation: the zone, the field, its value and the remedy. */
export function zonesElsewhereProblems({ zones, home }: ZonesAndHome): readonly string[] {
  return zones
    .filter(isElsewhere)
    .flatMap((each) => elsewhereProblems(each, home).map((text) => `setting zones: zone ${each.name} ${text}`));
}

function elsewhereProblems(zone: ZoneSetting, home: HomeSetting | undefined): readonly string[] {
  if (home === undefined)
    return [
      `is in another account or region (${zone.account ?? zone.region}), and setting home is missing; expected ${homeForm}`,
    ];
  const { account, region } = placeOf(zone, home);
  const topic = zone.alarmTopicArn?.split(":")[3];
  return [
    ...(partitionOf(region) === partitionOf(home.region)
      ? []
      : [
          `has region ${region}, which is of another partition of AWS than region ${home.region} of setting home; choose a region of the same partition`,
        ]),
    ...(account !== home.account || region !== home.region
      ? []
      : [
          `has account ${account} and region ${region}, where Starling itself is (setting home); leave account and region out`,
        ]),
    ...(topic === undefined || topic === region
      ? []
      : [
          `has alarmTopicArn ${zone.alarmTopicArn} of region ${topic}, but its alarm is in ${region}; name a topic of that region`,
        ]),
  ];
}

/** Regions are in several partitions, between which no role can be assumed. */
function partitionOf(region: string): string {
  const [partition = ""] = /^(cn|us-gov|us-iso[a-z]*|eu-isoe|eusc)-/.exec(region) ?? [];
  return partition;
}

/** The problems of an issue of the setting: the zone, the field, its value and the remedy. @param shown - writes a value. */
export function zoneProblem(
  issue: z.core.$ZodIssue,
  { given, shown }: { readonly given: unknown; readonly shown: (value: unknown) => string },
): readonly string[] {
  const list = typeof given === "string" ? parsed(given) : given;
  const field = fieldName(issue.path, list);
  if (issue.code === "unrecognized_keys") {
    const names = Object.keys((issue.path.length > 2 ? newNetwork : zone).shape);
    return issue.keys.map((key) => `${field} has no field ${key}; ${fieldRemedy(key, names)}`);
  }
  if (issue.code === "custom" && issue.params?.json === true)
    return [`setting zones is ${shown(given)}, which ${issue.message}; expected ${listForm}`];
  if (issue.code === "custom" && issue.params?.whole === true) return [`${field} ${issue.message}`];
  const value = issue.path.slice(1).reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], list);
  return [`${field} ${stateOf(value, shown)}; expected ${issue.message}`];
}

function stateOf(value: unknown, shown: (value: unknown) => string): string {
  return value === undefined ? "is missing" : `is ${shown(value)}`;
}

/** Zones that reach more clusters than the fleet has. */
export function tooManyClustersProblems({
  zones,
  clusters,
}: {
  readonly zones: readonly ZoneSetting[];
  readonly clusters: number;
}): readonly string[] {
  const counted = zones.filter((each) => each.clusters !== undefined);
  const sum = counted.reduce((total, each) => total + (each.clusters ?? 0), 0);
  if (sum <= clusters) return [];
  const each = counted.map((of) => `zone ${of.name} reaches ${of.clusters}`).join(", ");
  return [
    `setting zones has ${sum} clusters (${each}), but setting clusters is ${clusters}; raise setting clusters, or lower the field clusters of a zone`,
  ];
}

/** Zones with the role of another function. */
export function sharedRoleProblems({
  zones,
  ...settings
}: {
  readonly zones: readonly ZoneSetting[];
  readonly applyRole?: string | undefined;
  readonly discoverRole?: string | undefined;
}): readonly string[] {
  return (["applyRole", "discoverRole"] as const).flatMap((setting) =>
    zones.flatMap(({ name, role }, index) =>
      role === undefined || role !== settings[setting]
        ? []
        : [
            `setting zones[${index}].role of zone ${name} is ${role}, which setting ${setting} has, too; name another role, because the roles of clusters trust one zone by it`,
          ],
    ),
  );
}

/** `setting zones[1].vpc.cidr of zone fixed`. */
function fieldName([setting, ...path]: readonly PropertyKey[], list: unknown): string {
  const field = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  const [index] = path;
  const name = typeof index === "number" && Array.isArray(list) ? (list[index] as { name?: unknown })?.name : undefined;
  return `setting ${String(setting)}${field}${typeof name === "string" && name !== "" ? ` of zone ${name}` : ""}`;
}

function fieldRemedy(key: string, names: readonly string[]): string {
  const nearest = nearestName(key, names);
  return nearest === undefined ? `the fields are ${names.join(", ")}` : `did you mean ${nearest}?`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sameSet(one: readonly string[] = [], other: readonly string[] = []): boolean {
  return one.length === other.length && one.every((each) => other.includes(each));
}

function isRole(text: string): boolean {
  return Token.isUnresolved(text) || /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/.test(text);
}

/** Whether the text is a range that EC2 takes for a VPC of a zone. */
function isRange(text: string): boolean {
  const [, address = "", bits = ""] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(1[6-9]|2[0-4])$/.exec(text) ?? [];
  if (!isIPv4(address)) return false;
  const bytes = address.split(".").map(Number);
  const [first = 0, second] = bytes;
  if ([0, 127].includes(first) || first >= 224 || (first === 169 && second === 254)) return false;
  const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  return number % 2 ** (32 - Number(bits)) === 0;
}
