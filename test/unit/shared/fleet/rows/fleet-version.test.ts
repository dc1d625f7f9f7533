import { expect, test } from "vitest";
import { fleetParts, fleetVersionUpdate, valuesVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import { names } from "#test/support/planner-story.ts";

test("whoever writes an entry of the fleet says so in one of the versions that are read, and all are used", () => {
  const written = new Set(names(1000).map((name) => keyText(fleetVersionUpdate(name).update)));
  expect([...written].sort()).toEqual(fleetParts.map((part) => keyText(keys.fleetVersion(part))).sort());
  expect(written).not.toContain(keyText(valuesVersionUpdate().update));
});
