/** Values of a discovered cluster from Parameter Store: pure. */
import { canonicalJson } from "#shared/base/json.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { parameterPathOf } from "#shared/fleet/kinds/parameter-path.ts";
import { type Value, type Values, valueName, valuesSchema } from "#shared/fleet/kinds/values.ts";
import type { RefusedParameter } from "#shared/fleet/rows/discovery-rows.ts";

/** As Parameter Store returns it. A SecureString stays encrypted, because nobody asks for its value. */
export interface Parameter {
  readonly type: "String" | "StringList" | "SecureString";
  readonly value: string;
}

/** Parameters below the common path of a place's clusters, by their whole name. */
export type Parameters = ReadonlyMap<string, Parameter>;

/** Values from the parameters of one cluster. */
export interface ParameterValues {
  readonly values: Values;
  readonly refused: readonly RefusedParameter[];
}

/**
 * The parameters directly below the cluster's path, by their last level.
 * @param seen - undefined when they could not be read, and nothing is known of any.
 * @param before - the values of the last scan. A parameter that exists and is no valid value keeps its last one; a
 *   deleted parameter is dropped.
 * @returns undefined when no parameters are configured, or when nothing is known of them now or before.
 */
export function parametersFrom(
  { values }: Pick<ClusterDiscoverySpec, "values">,
  {
    eks,
    seen,
    before,
  }: {
    readonly eks: EksArn;
    readonly seen: Parameters | undefined;
    readonly before: ParameterValues | undefined;
  },
): ParameterValues | undefined {
  if (values?.ssm === undefined) return undefined;
  if (seen === undefined) return before;
  const path = `${parameterPathOf(values.ssm.path, eks)}/`;
  const found: Record<string, Value> = {};
  const refused: RefusedParameter[] = [];
  for (const [parameter, { type, value }] of seen) {
    const name = parameter.slice(path.length);
    if (!parameter.startsWith(path) || name === "" || name.includes("/")) continue;
    const reason = valueName.safeParse(name).success
      ? type === "SecureString"
        ? ("SecureString" as const)
        : undefined
      : ("NoName" as const);
    if (reason === undefined) {
      found[name] = type === "StringList" ? value.split(",") : value;
      continue;
    }
    refused.push({ parameter, reason });
    const kept = before !== undefined && Object.hasOwn(before.values, name) ? before.values[name] : undefined;
    if (kept !== undefined) found[name] = kept;
  }
  if (valuesSchema.safeParse(found).success) return { values: found, refused };
  return { values: before?.values ?? {}, refused: [...refused, { parameter: path.slice(0, -1), reason: "TooLarge" }] };
}

/** Whether a scan has nothing to write because of them. */
export function sameParameters(a: ParameterValues | undefined, b: ParameterValues | undefined): boolean {
  return canonicalJson(a ?? {}) === canonicalJson(b ?? {});
}
