import { expect, test } from "vitest";
import { fleetParts, fleetVersionUpdate, valuesVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import { names } from "#test/support/planner-story.ts";

test("writes of the fleet's entries update exactly the versions that readers compare", () => {
  const written = new Set(names(1000).map((name) => keyText(fleetVersionUpdate(name).update)));
  expect([...written].sort()).toEqual(fleetParts.map((part) => keyText(keys.fleetVersion(part))).sort());
  expect(written).not.toContain(keyText(valuesVersionUpdate().update));
});
