/** A registered cluster becomes due to have its blobs stored again, also without any assignment and after other changes. */
import { expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { apiFixture, cluster } from "#test/unit/functions/api/api-fixture.ts";

test("a cluster is due about twenty days after its registration, and about twenty days after its blobs were stored again", async () => {
  const api = apiFixture();
  const dueDay = async () => dueAtOf((await api.table.get(keys.cluster("c1")))?.dueKey ?? "").slice(0, 10);
  await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
  const first = await dueDay();
  expect(["2026-12-09", "2026-12-10", "2026-12-11"]).toContain(first);
  api.setNow("2026-11-25T08:00:00Z");
  const relabelled = { ...cluster("c1"), metadata: { name: "c1", labels: { ring: "other" } } };
  await api.call("POST", "/v1/apply", { documents: [relabelled] });
  expect(await dueDay()).toBe(first);
  const before = await api.table.get(keys.cluster("c1"));
  const status = { ...before?.status, blobsAt: "2026-11-25T08:00:00.000Z", renewedAt: "2026-11-25T08:00:00.000Z" };
  await api.table.write([{ update: keys.cluster("c1"), set: { status } }]);
  await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
  expect(["2026-12-14", "2026-12-15", "2026-12-16"]).toContain(await dueDay());
  const { body } = await api.call("GET", "/v1/clusters/c1");
  expect(body.status).not.toHaveProperty("blobsAt");
  expect(body.status).not.toHaveProperty("renewedAt");
});
