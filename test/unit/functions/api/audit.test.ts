/** The audit log is asked for under a path of its own, which only administrators' policy has. */
import { expect, test } from "vitest";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

test.each([
  ["/v1/audit", "id is missing; expected a correlation id, such as push-20261123T061254Z-1f8a90c2"],
  [
    "/v1/audit?kind=Pod&name=a",
    'kind is "Pod"; expected one of Cluster, ClusterDiscovery, ClusterValues, Source, Sync, SyncGroup',
  ],
  ["/v1/audit?kind=Sync&name=..", 'name is ".."; expected the name of a Sync'],
])("the audit log is asked for by an id or an object: %s", async (path, message) => {
  expect(await apiFixture().call("GET", path)).toMatchObject({ status: 400, body: { code: "BadRequest", message } });
});
