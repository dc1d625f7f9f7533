/** Sources of one upstream are polled together, so that one listing serves them all. */
import { inParts } from "#shared/base/in-parts.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";

type Polled = Pick<SourceRow, "namespace" | "name" | "spec">;

/** More would not be polled in the time of one invocation, when all of them have something new. */
const mostTogether = 200;

/**
 * Equal for Sources whose polls ask the same questions of the same place. With credentials only within a namespace,
 * because a secret, and a grant to Starling's role, can be for some namespaces only.
 * @returns undefined for an upstream that each Source asks for itself.
 */
export function sharedUpstream({ namespace, spec }: Omit<Polled, "name">): string | undefined {
  const kind = (["git", "helm", "oci", "archive"] as const).find((each) => spec[each] !== undefined);
  const { url, credentials } = (kind && spec[kind]) ?? {};
  if (url === undefined) return undefined;
  const place = [kind, URL.canParse(url) ? new URL(url).href.replace(/\/+$/, "") : url];
  return canonicalJson(credentials === undefined ? place : [...place, credentials, namespace]);
}

/** The Sources in groups that are polled together: one for each upstream. */
export function polledTogether<Each extends Polled>(sources: readonly Each[]): readonly (readonly Each[])[] {
  const together = Map.groupBy(
    sources,
    (source) => sharedUpstream(source) ?? canonicalJson([source.namespace, source.name]),
  );
  return [...together.values()].flatMap((group) => inParts(group, mostTogether));
}
