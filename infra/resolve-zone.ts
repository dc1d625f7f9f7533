/** The setting `resolveZone`: the zone from whose network Sources, and the keys of issuers, are read. */
import { Annotations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import { isElsewhere, type ZoneSetting } from "#infra/zone-settings.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

interface ResolveSettings {
  readonly gitAllow: readonly string[];
  readonly resolveZone?: string | undefined;
  readonly zones: readonly Pick<ZoneSetting, "name" | "account" | "region">[];
}

/** A zone whose network the function cannot enter. */
export function resolveZoneProblems({ resolveZone, zones }: Omit<ResolveSettings, "gitAllow">): readonly string[] {
  const near = zones.filter((zone) => !isElsewhere(zone));
  if (resolveZone === undefined || near.some(({ name }) => name === resolveZone)) return [];
  const given = `setting resolveZone is "${resolveZone}"`;
  if (resolveZone === homeZone) return [`${given}, which has no network; leave it out, or name one of setting zones`];
  const names = near.map(({ name }) => name);
  if (zones.some(({ name }) => name === resolveZone))
    return [
      `${given}, which is in another account or region, and resolve is not; ${names.length === 0 ? `add ${zoneExample("private")} to setting zones` : `name one of ${names.join(", ")}`}, or leave it out`,
    ];
  if (names.length === 0)
    return [
      `${given}, but setting zones has no zone of this account and region; add ${zoneExample(resolveZone)} to it, or leave it out`,
    ];
  const nearest = nearestName(resolveZone, names);
  const remedy = nearest === undefined ? "name one of them" : `did you mean ${nearest}?`;
  return [`${given}, but setting zones has only ${names.join(", ")}; ${remedy}`];
}

/** Warns at each synthesis of allowed private hosts that nothing can reach. */
export function sayWhatIsNotReached(scope: IConstruct, { gitAllow, resolveZone, zones }: ResolveSettings): void {
  if (gitAllow.length === 0 || resolveZone !== undefined) return;
  const names = zones.filter((zone) => !isElsewhere(zone)).map(({ name }) => name);
  const zone =
    names.length === 0 ? `a zone of setting zones, such as ${zoneExample("private")}` : `one of ${names.join(", ")}`;
  Annotations.of(scope).addWarningV2(
    "starling:gitAllow",
    `setting gitAllow has ${gitAllow.join(", ")}, but resolve and webhook run outside of every VPC and reach public addresses only; set resolveZone to ${zone}, or leave gitAllow out`,
  );
}

function zoneExample(name: string): string {
  return `{"name": "${name}", "subnets": [...], "securityGroups": [...]}`;
}
