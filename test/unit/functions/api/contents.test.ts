import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { apiFixture, cluster, principal } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const ns = "/v1/namespaces/payments/syncgroups/shop";
const digest = `sha256:${"a".repeat(64)}`;

describe("the fleet as a plan goes by it", () => {
  test("is every cluster with its own labels and values, and what it was assigned of the group", async () => {
    const api = apiFixture();
    const documents = [cluster("c1", { env: "prod" }), cluster("c2", { env: "dev" })];
    await api.call("POST", "/v1/apply", { documents });
    expect((await api.call("GET", `${ns}/fleet`)).body.items).toEqual([
      { cluster: "c1", uid: expect.any(String), labels: { env: "prod" }, values: {}, syncs: [] },
      { cluster: "c2", uid: expect.any(String), labels: { env: "dev" }, values: {}, syncs: [] },
    ]);
    await storeRollout(api, { number: 1, states: { all: ["Succeeded"] }, unit: { templates: ["web"] } });
    const orphan = syncRow("c2", "shop.web");
    const left = { ...orphan, desired: { ...orphan.desired, action: "orphan" as const } };
    await api.table.write([syncRow("c1", "shop.web"), left].map((put) => ({ put, when: "absent" as const })));
    const { body } = await api.call("GET", `${ns}/fleet?cluster=c1`);
    expect(body.items).toMatchObject([
      {
        cluster: "c1",
        syncs: [{ name: "shop.web", action: "apply", renderDigest: "sha256:77ab", revision: "main@sha1:9f2c1ab" }],
      },
    ]);
    expect(JSON.stringify(body)).not.toContain("token-2");
    expect((await api.call("GET", `${ns}/fleet?cluster=c2`)).body.items[0].syncs).toEqual([]);
    expect((await api.call("GET", `${ns}/fleet?limit=1`)).body.metadata.continue).toEqual(expect.any(String));
    expect(await api.table.get(keys.unit(shop))).toBeDefined();
  });
});

describe("contents", () => {
  test("are URLs of what was named, and who asked is logged", async () => {
    const api = apiFixture();
    const { status, body } = await api.call("POST", `${ns}/contents`, { renderings: [digest] });
    expect([status, body]).toEqual([
      200,
      { renderings: { [digest]: `https://blobs.example/renderings/${"a".repeat(64)}.json` }, artifacts: {} },
    ]);
    expect(api.log).toContainEqual(
      expect.objectContaining({ message: "contents handed out", principal, renderings: [digest], name: "shop" }),
    );
    expect(api.takeMessages()).toEqual([]);
  });

  test.each(["../plans/x", "sha256:short", 7])("of %j are refused: it is no digest", async (wrong) => {
    const api = apiFixture();
    const { status, body } = await api.call("POST", `${ns}/contents`, { artifacts: [wrong] });
    expect([status, body.message]).toEqual([400, expect.stringContaining("artifacts.0")]);
  });
});
