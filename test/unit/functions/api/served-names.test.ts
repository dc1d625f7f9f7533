/** A Cluster is refused when its zone does not serve clusters of its name. */

import { expect, test } from "vitest";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { apiFixture, cluster } from "#test/unit/functions/api/api-fixture.ts";

const served = new Map([["spoke", ["eu-*", "fra-1"]]]);
const inZone = (name: string, zone: string) => {
  const document = cluster(name, {});
  return { ...document, spec: { ...document.spec, access: { zone } } };
};

function fixture() {
  const zones = { zoneNetworks: parseZoneNetworks("spoke=subnets,fixed=vpc"), servedNames: served };
  return apiFixture(new MemoryTable(), undefined, undefined, zones);
}

test("one name that the zone does not serve refuses the whole request, with the zone, the name, the patterns and the remedy", async () => {
  const api = fixture();
  const documents = [inZone("eu-1", "spoke"), inZone("us-1", "spoke"), inZone("us-2", "fixed")];
  const { status, body } = await api.call("POST", "/v1/apply", { documents });
  expect(status).toBe(422);
  expect(body.problems).toEqual([
    {
      document: 1,
      object: "Cluster us-1",
      field: "spec.access.zone",
      message:
        "is spoke, which serves clusters named eu-*, fra-1, and not us-1; name another zone, or an operator adds the name to the field clusterNames of zone spoke in the setting zones and deploys",
    },
  ]);
  expect(await api.table.get(keys.cluster("eu-1"))).toBeUndefined();
  expect(api.takeMessages()).toEqual([]);
});

test("names that match a pattern whole, and zones without patterns, are taken", async () => {
  const api = fixture();
  const documents = [
    inZone("eu-1", "spoke"),
    inZone("fra-1", "spoke"),
    inZone("us-2", "fixed"),
    inZone("us-3", "home"),
  ];
  expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 200 });
  for (const name of ["fra-10", "not-eu-1"]) {
    const refused = await api.call("POST", "/v1/apply", { documents: [inZone(name, "spoke")] });
    expect(refused).toMatchObject({ status: 422, body: { problems: [{ field: "spec.access.zone" }] } });
  }
});
