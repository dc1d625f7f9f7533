import type { AccessReviews, Deed, KnownRule } from "#shared/adapters/kube/access-reviews.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { type AccessRule, fleetRules, namespaceRules, ownRules } from "#shared/fleet/access/cluster-rbac.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import { parentNamespace } from "#shared/kube/parent-object.ts";

const concurrency = 8;
/** Number of names in a message. */
const mostNamed = 6;
const remedy =
  "kubectl apply --server-side -f examples/cluster-access/starling-rbac.yaml, with the group of the access entry in its bindings";

/** Checks the rights that Starling needs for itself, and those that the manifests of most fleets need. */
export async function grantedLink(reviews: Pick<AccessReviews, "isAllowed" | "rulesIn">): Promise<LinkFinding> {
  try {
    const own = [...deedsOf(ownRules), ...deedsOf(namespaceRules, parentNamespace)];
    // Starling lists objects for its own use.
    const fleet = deedsOf(fleetRules).filter(({ verb }) => verb !== "list");
    const missing = new Set(await refused([...own, ...fleet], reviews));
    return finding(
      own.filter((deed) => missing.has(deed)),
      { fleet, missing: fleet.filter((deed) => missing.has(deed)) },
    );
  } catch (error) {
    const reported = { code: errorCode(error), message: errorMessage(error), remedy: "check again in a minute" };
    return { link: "authorization", state: "unknown", ...reported };
  }
}

function finding(
  own: readonly Deed[],
  { fleet, missing }: { readonly fleet: readonly Deed[]; readonly missing: readonly Deed[] },
): LinkFinding {
  const link = "authorization" as const;
  if (own.length > 0) {
    return { link, state: "broken", code: "Forbidden", message: `Starling may not ${named(own)}`, remedy };
  }
  if (missing.length === 0) return { link, state: "ok" };
  const message = `manifests of a fleet may not ${named(missing)}`;
  if (missing.length === fleet.length) return { link, state: "broken", code: "FleetForbidden", message, remedy };
  // A fleet may need fewer rights; a Sync that needs more names the kind and the verb.
  return { link, state: "limited", code: "FleetForbidden", message, remedy };
}

function deedsOf(rules: readonly AccessRule[], namespace?: string): readonly Deed[] {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((name) =>
          verbs.map((verb) => ({
            verb,
            group,
            resource,
            ...(name === undefined ? {} : { name }),
            ...(namespace === undefined ? {} : { namespace }),
          })),
        ),
      ),
    ),
  );
}

/**
 * Reads the rules with one request where they suffice, and otherwise asks right by right, because not every authorizer
 * lists its rules.
 */
async function refused(deeds: readonly Deed[], reviews: Pick<AccessReviews, "isAllowed" | "rulesIn">) {
  const rules = new Map<string, readonly KnownRule[]>();
  for (const namespace of ["default", parentNamespace]) rules.set(namespace, await reviews.rulesIn(namespace));
  const open = deeds.filter((deed) => !rules.get(deed.namespace ?? "default")?.some((rule) => covers(rule, deed)));
  const missing: Deed[] = [];
  await runConcurrently(open, concurrency, async (deed) => {
    if (!(await reviews.isAllowed(deed))) missing.push(deed);
  });
  return missing;
}

function covers(rule: KnownRule, { group, resource, verb, name }: Deed): boolean {
  const has = (texts: readonly string[], text: string) => texts.includes(text) || texts.includes("*");
  const isNamed = rule.resourceNames.length === 0 || (name !== undefined && rule.resourceNames.includes(name));
  return has(rule.apiGroups, group) && has(rule.resources, resource) && has(rule.verbs, verb) && isNamed;
}

/** `get, list deployments.apps, delete secrets and 12 more`, in the order of the rules. */
function named(deeds: readonly Deed[]): string {
  const byResource = Map.groupBy(deeds, ({ resource, group, name, namespace }) => {
    const full = group === "" || group === "*" ? resource : `${resource}.${group}`;
    const [one, where] = [name === undefined ? "" : ` ${name}`, namespace === undefined ? "" : ` in ${namespace}`];
    return `${full === "*" ? "anything" : full}${one}${where}`;
  });
  const texts = [...byResource].map(([what, each]) => `${each.map(({ verb }) => verb).join("/")} ${what}`);
  const more = texts.length - mostNamed;
  return `${texts.slice(0, mostNamed).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
