/** The setting `zones`: the places besides `home` from which clusters are reached. */
import { Token } from "aws-cdk-lib";
import * as z from "zod";
import { nearestName } from "#shared/base/nearest-name.ts";
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
  "an IPv4 range from /16 to /24 that begins at its first address, such as 10.250.0.0/24 (the default), or no value";
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

const zone = z
  .strictObject(
    {
      name: z
        .string(nameForm)
        .refine((name) => zoneName.safeParse(name).success, nameForm)
        .refine((name) => name !== homeZone, nameForm),
      /** How many clusters of the fleet it reaches. */
      clusters: z.int(clusterCount).min(1, clusterCount).max(999_999, clusterCount).optional(),
      /** A new VPC with private subnets, and with NAT gateways whose addresses are fixed. */
      vpc: newNetwork.optional(),
      /** Existing subnets, with security groups of their VPC. */
      subnets: idsOf("subnet", { what: "subnets", most: 16 }).optional(),
      securityGroups: idsOf("sg", { what: "security groups", most: 5 }).optional(),
      /** VPCs whose clusters this zone reaches: ClusterDiscoveries put clusters into zones by them. */
      vpcs: idsOf("vpc", { what: "VPCs", most: mostVpcs }).optional(),
    },
    zoneForm,
  )
  .superRefine(({ vpc, subnets, securityGroups }, context) => {
    const refuse = (path: readonly string[], message: string) =>
      context.addIssue({ code: "custom", path: [...path], message, params: { whole: true } });
    if (vpc === undefined && subnets === undefined)
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

const zoneList = z
  .array(zone, listForm)
  .max(mostZones, listForm)
  .superRefine((zones, context) => {
    const vpcs = zones.flatMap((each) => each.vpcs ?? []);
    if (vpcs.length > mostVpcs)
      context.addIssue({
        code: "custom",
        message: `has ${vpcs.length} VPCs, and at most ${mostVpcs} fit into all zones together; name the others in spec.access.zonesByVpc of ClusterDiscoveries`,
        params: { whole: true },
      });
    for (const [index, { name, subnets, securityGroups, vpcs: own = [] }] of zones.entries()) {
      const before = zones.slice(0, index);
      const refuse = (field: string, message: string) =>
        context.addIssue({ code: "custom", path: [index, field], message, params: { whole: true } });
      // The outputs of the stack are named after zones, without dashes.
      const [namesake] = before.filter((each) => each.name.replaceAll("-", "") === name.replaceAll("-", ""));
      if (namesake?.name === name) refuse("name", `is ${name} twice; give each zone a name of its own`);
      else if (namesake !== undefined)
        refuse("name", `is ${name}, and differs from ${namesake.name} by dashes only; choose another name`);
      for (const vpc of own) {
        const other = before.find((each) => each.vpcs?.includes(vpc));
        if (other !== undefined)
          refuse(
            "vpcs",
            `has ${vpc}, which zone ${other.name} has, too; leave it to the zone that reaches its clusters`,
          );
      }
      const [twin] = before.filter(
        (each) => sameSet(each.subnets, subnets) && sameSet(each.securityGroups, securityGroups),
      );
      if (subnets !== undefined && twin !== undefined)
        refuse(
          "subnets",
          `and securityGroups are those of zone ${twin.name}, so that both zones reach the same clusters; leave one zone out`,
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

/** The text of a problem of the setting: the zone, the field, its value and the remedy. @param shown - writes a value. */
export function zoneProblem(
  issue: z.core.$ZodIssue,
  { given, shown }: { readonly given: unknown; readonly shown: (value: unknown) => string },
): string {
  const list = typeof given === "string" ? parsed(given) : given;
  const place = placeOf(issue.path, list);
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => unknownField(key, { issue, place })).join("\n");
  if (issue.code === "custom" && issue.params?.json === true)
    return `setting zones is ${shown(given)}, which ${issue.message}; expected ${listForm}`;
  if (issue.code === "custom" && issue.params?.whole === true) return `${place} ${issue.message}`;
  const value = issue.path.slice(1).reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], list);
  const state = value === undefined ? "is missing" : `is ${shown(value)}`;
  return `${place} ${state}; expected ${issue.message}`;
}

/** @throws Error when the zones reach more clusters than the fleet has. */
export function refuseTooManyClusters(zones: readonly ZoneSetting[], clusters: number): void {
  const counted = zones.filter((each) => each.clusters !== undefined);
  const sum = counted.reduce((total, each) => total + (each.clusters ?? 0), 0);
  if (sum <= clusters) return;
  const each = counted.map((of) => `zone ${of.name} reaches ${of.clusters}`).join(", ");
  throw new Error(
    `setting zones has ${sum} clusters (${each}), but setting clusters is ${clusters}; raise setting clusters, or lower the field clusters of a zone`,
  );
}

/** `setting zones[1].vpc.cidr of zone fixed`. */
function placeOf([setting, ...path]: readonly PropertyKey[], list: unknown): string {
  const field = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  const [index] = path;
  const name = typeof index === "number" && Array.isArray(list) ? (list[index] as { name?: unknown })?.name : undefined;
  return `setting ${String(setting)}${field}${typeof name === "string" && name !== "" ? ` of zone ${name}` : ""}`;
}

function unknownField(
  key: string,
  { issue, place }: { readonly issue: z.core.$ZodIssue; readonly place: string },
): string {
  const names = Object.keys((issue.path.length > 2 ? newNetwork : zone).shape);
  const nearest = nearestName(key, names);
  const remedy = nearest === undefined ? `the fields are ${names.join(", ")}` : `did you mean ${nearest}?`;
  return `${place} has no field ${key}; ${remedy}`;
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

/** Whether the text is a range that EC2 takes for a VPC of a zone. */
function isRange(text: string): boolean {
  const [, address = "", bits = ""] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(1[6-9]|2[0-4])$/.exec(text) ?? [];
  if (address === "") return false;
  const bytes = address.split(".").map(Number);
  if (bytes.some((byte) => byte > 255)) return false;
  const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  return number % 2 ** (32 - Number(bits)) === 0;
}
