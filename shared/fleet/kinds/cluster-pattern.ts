import * as z from "zod";
import { nameSchema } from "#shared/base/name-schema.ts";

const clusterPatternRule =
  "must be the name of a Cluster, with * for any part of it, such as prod-eu-1 or eu-*: small letters, digits and dashes";

/** A pattern of the names of Clusters, which IAM reads as Starling does: `*` stands for any part, and every other letter for itself. */
export const clusterPattern = z
  .string()
  .refine((pattern) => nameSchema.safeParse(pattern.replaceAll("*", "a")).success, clusterPatternRule);

export function fitsClusterPattern(name: string, pattern: string): boolean {
  return new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
}
