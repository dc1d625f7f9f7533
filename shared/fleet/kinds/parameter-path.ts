/** Path of a discovered cluster's parameters in Parameter Store: `/starling/clusters/{{ eks.name }}`. */
import { excerpt } from "#shared/base/excerpt.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import { filledWith, unknownExpression } from "#shared/fleet/kinds/cluster-name.ts";

/** Limits of a name in Parameter Store: its characters, and fifteen levels including the parameter's own. */
const maxCharacters = 1000;
const maxLevels = 14;
const level = /^[A-Za-z0-9_.-]+$/;
/** Prefixes that Parameter Store reserves. */
const reserved = /^\/(aws|ssm)/i;

type Place = Pick<EksArn, "name" | "accountId" | "region">;

/** @returns the problem of the text, or undefined. */
export function checkParameterPath(text: string): string | undefined {
  const shown = `"${excerpt(text)}"`;
  const unknown = unknownExpression(text);
  if (unknown !== undefined) return unknown;
  const levels = filledWith(text, { name: "a", accountId: "1", region: "a" }).split("/").slice(1);
  if (!text.startsWith("/") || levels.some((each) => !level.test(each))) {
    return `${shown} is no path of Parameter Store; expected one such as /starling/clusters/{{ eks.name }}, of A-Z, a-z, 0-9, _, . and - between slashes`;
  }
  if (levels.length > maxLevels || text.length > maxCharacters) {
    return `${shown} is longer than Parameter Store takes; expected at most ${maxLevels} levels and ${maxCharacters} characters`;
  }
  if (reserved.test(text))
    return `${shown} begins with what AWS keeps for itself; choose another one than /aws and /ssm`;
  if (levelsBefore(text).length > 0) return undefined;
  return `${shown} begins with an expression, so that every parameter of the account would be read; begin with a level of its own, such as /starling`;
}

/** The path of one cluster. */
export function parameterPathOf(path: string, cluster: Place): string {
  return filledWith(path, cluster);
}

/** The common part for all clusters of an account and region: it is read once, with everything below. */
export function sharedParameterPath(path: string): { readonly path: string; readonly isWhole: boolean } {
  const shared = `/${levelsBefore(path).join("/")}`;
  return { path: shared, isWhole: shared === path };
}

/** The levels before the first that has an expression. */
function levelsBefore(path: string): readonly string[] {
  const levels = path.split("/").slice(1);
  const first = levels.findIndex((each) => each.includes("{{"));
  return first === -1 ? levels : levels.slice(0, first);
}
