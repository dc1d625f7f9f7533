/** The setting `zones`: the places besides `home` from which clusters are reached. */
import { Token } from "aws-cdk-lib";
import * as z from "zod";
import { homeZone, zoneName } from "#shared/fleet/kinds/zone-name.ts";

const idOf = (kind: string) =>
  z
    .string()
    .refine(
      (text) => Token.isUnresolved(text) || new RegExp(`^${kind}-[0-9a-f]{8,17}$`).test(text),
      `must be an id such as ${kind}-0a1b2c3d4e5f60718`,
    );

const newNetwork = z.strictObject({
  /** IPv4 range of the new VPC. */
  cidr: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,3}){3}\/(1[6-9]|2[0-4])$/, "must be a range from /16 to /24, such as 10.250.0.0/24")
    .default("10.250.0.0/24"),
  /** NAT gateways, each with a fixed address. */
  natGateways: z.int("must be 1 or 2").min(1, "must be 1 or 2").max(2, "must be 1 or 2").default(1),
});

const zone = z
  .strictObject({
    name: zoneName.refine((name) => name !== homeZone, "must not be home, which every installation has"),
    /** A new VPC with private subnets, and with NAT gateways whose addresses are fixed. */
    vpc: newNetwork.optional(),
    /** Existing subnets, with security groups of their VPC. */
    subnets: z.array(idOf("subnet")).min(1, "must name at least one subnet").max(16, "must name at most 16").optional(),
    securityGroups: z.array(idOf("sg")).min(1, "must name at least one").max(5, "must name at most 5").optional(),
  })
  .superRefine(({ vpc, subnets, securityGroups }, context) => {
    if ((vpc === undefined) === (subnets === undefined))
      context.addIssue({
        code: "custom",
        message: "needs exactly one of vpc (a new network) and subnets (existing ones)",
      });
    if (subnets !== undefined && securityGroups === undefined)
      context.addIssue({
        code: "custom",
        path: ["securityGroups"],
        message: "is required with subnets: security groups of their VPC that let requests out to the API servers",
      });
    if (vpc !== undefined && securityGroups !== undefined)
      context.addIssue({
        code: "custom",
        path: ["securityGroups"],
        message: "must not stand beside vpc, which gets a security group of its own",
      });
  });

const zoneList = z
  .array(zone)
  .max(20, "must have at most 20 zones")
  .refine((zones) => new Set(zones.map(({ name }) => name)).size === zones.length, "must not name a zone twice");

export const zonesSchema = z.union([
  zoneList,
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: "custom", message: "must be JSON" });
        return z.NEVER;
      }
    })
    .pipe(zoneList),
]);

export type ZoneSetting = z.output<typeof zone>;
