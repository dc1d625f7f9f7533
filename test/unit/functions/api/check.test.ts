import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { apiFixture, cluster, principal } from "#test/unit/functions/api/api-fixture.ts";

const path = "/v1/clusters/c1/check";

async function withCluster() {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", {})] });
  api.takeMessages();
  return api;
}

describe("a check of the connection to a cluster", () => {
  test("a request for a check is recorded with its author, sent to the worker function, and expires by itself", async () => {
    const api = await withCluster();
    const { status, body } = await api.call("POST", path);
    expect(status).toBe(200);
    expect(api.takeMessages()).toEqual([{ to: "apply", cluster: "c1", check: true }]);
    expect(body).toEqual({ id: expect.any(String), zone: "home" });
    const asked = { id: body.id, at: "2026-11-20T08:00:00.000Z", by: principal };
    expect(await api.table.get(keys.check("c1"))).toMatchObject({ asked, expiresAt: 1_795_248_000 });
    expect(await api.call("GET", path)).toEqual({ status: 200, body: { asked } });
  });

  test("one check serves all requests meanwhile, and a later request starts another, in case the message was lost", async () => {
    const api = await withCluster();
    const { body: first } = await api.call("POST", path);
    expect((await api.call("POST", path)).body).toEqual(first);
    expect(api.takeMessages()).toHaveLength(1);
    api.setNow("2026-11-20T08:00:21Z");
    const { body: second } = await api.call("POST", path);
    expect(second.id).not.toBe(first.id);
    expect(api.takeMessages()).toHaveLength(1);
  });

  test("a check keeps its answer until the next one, and an answered check can be repeated at once", async () => {
    const api = await withCluster();
    const { body: first } = await api.call("POST", path);
    const row = await api.table.get(keys.check("c1"));
    if (row === undefined) throw new Error("it was asked");
    const answer = { id: first.id, at: "2026-11-20T08:00:02.000Z", links: [{ link: "cluster", state: "ok" } as const] };
    await api.table.write([{ put: { ...row, version: row.version + 1, answer } as typeof row }]);
    expect((await api.call("GET", path)).body.answer).toEqual(answer);
    const { body: second } = await api.call("POST", path);
    expect(second.id).not.toBe(first.id);
    expect((await api.call("GET", path)).body).toMatchObject({ asked: { id: second.id }, answer });
  });

  test("a check of an unknown Cluster is refused, and nothing is sent", async () => {
    const api = apiFixture();
    for (const method of ["POST", "GET"]) {
      expect(await api.call(method, path)).toMatchObject({
        status: 404,
        body: { code: "NotFound", message: "Cluster c1 does not exist" },
      });
    }
    expect(api.takeMessages()).toEqual([]);
  });

  test("a check that nobody has asked for is empty", async () => {
    const api = await withCluster();
    expect(await api.call("GET", path)).toEqual({ status: 200, body: {} });
  });
});
