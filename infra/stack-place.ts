import { type Stack, Token } from "aws-cdk-lib";
import type { Place } from "#infra/zone-settings.ts";

/** @throws Error when a stack whose account and region are known is elsewhere than a setting says. */
export function refuseOtherPlace(
  { account, region }: Pick<Stack, "account" | "region">,
  { stack, place, setting }: { readonly stack: string; readonly place: Place; readonly setting: string },
): void {
  for (const [field, value, desired] of [
    ["account", account, place.account],
    ["region", region, place.region],
  ] as const) {
    if (Token.isUnresolved(value) || value === desired) continue;
    throw new Error(`${stack} has ${field} ${value}; expected ${desired}, as setting ${setting} says`);
  }
}
