import * as z from "zod";
import { nameSchema } from "#shared/base/name-schema.ts";

const clusterPatternRule =
  "must be the name of a Cluster, with * for any part of it, such as prod-eu-1 or eu-*: small letters, digits and dashes";

/** A pattern of the names of Clusters, which IAM reads as Starling does: `*` stands for any part, and every other letter for itself. */
export const clusterPattern = z
  .string()
  .refine((pattern) => nameSchema.safeParse(pattern.replaceAll("*", "a")).success, clusterPatternRule);

/** Each part between two stars is taken where it first fits: a regular expression would try all places of all parts. */
export function fitsClusterPattern(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let from = first.length;
  for (const part of rest) {
    const at = name.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}
