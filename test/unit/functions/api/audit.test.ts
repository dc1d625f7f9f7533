/** The audit log has a path of its own, which only the administrators' policy allows. */
import { expect, test } from "vitest";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

test.each([
  ["/v1/audit", "id is missing; expected a correlation id, such as push-20261123T061254Z-1f8a90c2"],
  [
    "/v1/audit?kind=Pod&name=a",
    'kind is "Pod"; expected one of Cluster, ClusterDiscovery, ClusterValues, Window, Source, Receiver, Sync, SyncGroup',
  ],
  ["/v1/audit?kind=Sync&name=..", 'name is ".."; expected the name of a Sync'],
])("a request for the audit log needs an id or an object: %s", async (path, message) => {
  expect(await apiFixture().call("GET", path)).toMatchObject({ status: 400, body: { code: "BadRequest", message } });
});

test("a request for the audit log may go back as far as it is kept, and one for other logs as far as those are kept", async () => {
  const api = apiFixture();
  const now = new Date("2026-11-20T08:00:00Z");
  api.setNow(now.toISOString());
  const id = "push-20261123T061254Z-1f8a90c2";
  const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000).toISOString();
  const asked = async (path: string, days: number) => {
    const { status, body } = await api.call("GET", `${path}?id=${id}&since=${daysAgo(days)}`);
    return [status, body.message];
  };
  const tooOld = (days: number) => expect.stringContaining(`expected a time within the last ${days} days`);
  expect(await asked("/v1/audit", 730)).toEqual([200, undefined]);
  expect(await asked("/v1/audit", 732)).toEqual([400, tooOld(731)]);
  expect(await asked("/v1/logs", 30)).toEqual([200, undefined]);
  expect(await asked("/v1/logs", 32)).toEqual([400, tooOld(31)]);
});
