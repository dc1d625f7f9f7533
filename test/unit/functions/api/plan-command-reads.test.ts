import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { apiFixture, cluster, principal, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const ns = "/v1/namespaces/payments";
const group = `${ns}/syncgroups/shop`;

describe("the fleet as the command `plan` reads it", () => {
  test("the fleet lists every cluster with its labels and values, and with its Syncs of the group", async () => {
    const api = apiFixture();
    const documents = [cluster("c1", { env: "prod" }), cluster("c2", { env: "dev" })];
    await api.call("POST", "/v1/apply", { documents });
    expect((await api.call("GET", `${group}/fleet`)).body.items).toEqual([
      { cluster: "c1", uid: expect.any(String), labels: { env: "prod" }, values: {}, syncs: [] },
      { cluster: "c2", uid: expect.any(String), labels: { env: "dev" }, values: {}, syncs: [] },
    ]);
    await storeRollout(api, { number: 1, states: { all: ["Succeeded"] }, rolloutState: { templates: ["web"] } });
    const orphan = syncRow("c2", "shop.web");
    const left = { ...orphan, desired: { ...orphan.desired, action: "orphan" as const } };
    await api.table.write([syncRow("c1", "shop.web"), left].map((put) => ({ put, when: "absent" as const })));
    const { body } = await api.call("GET", `${group}/fleet?cluster=c1`);
    expect(body.items).toMatchObject([
      {
        cluster: "c1",
        syncs: [{ name: "shop.web", action: "apply", renderDigest: "sha256:77ab", revision: "main@sha1:9f2c1ab" }],
      },
    ]);
    expect(JSON.stringify(body)).not.toContain("token-2");
    expect((await api.call("GET", `${group}/fleet?cluster=c2`)).body.items[0].syncs).toEqual([]);
    expect((await api.call("GET", `${group}/fleet?limit=1`)).body.metadata.continue).toEqual(expect.any(String));
    expect(await api.table.get(keys.rolloutState(shop))).toBeDefined();
  });
});

const rendering = `sha256:${"a".repeat(64)}`;
const former = `sha256:${"b".repeat(64)}`;
const current = `sha256:${"c".repeat(64)}`;
const elsewhere = `sha256:${"d".repeat(64)}`;

const bodies = {
  renderings: (digest: unknown, change: object = {}) => ({
    renderings: [{ digest, cluster: "c1", sync: "shop.web", ...change }],
  }),
  artifacts: (digest: unknown) => ({ artifacts: [digest] }),
};

/**
 * A group and another group with a rendering on c1 each, and two Sources with an artifact; one Source also has an older
 * one.
 */
async function withContents() {
  const api = apiFixture();
  const template = { name: "web", source: "app" };
  const documents = [source("app"), source("other"), syncGroup("shop", [template]), syncGroup("bank", [template])];
  await api.call("POST", "/v1/apply", { documents });
  const holding = (name: string, renderDigest: string) => {
    const row = syncRow("c1", name);
    return { ...row, desired: { ...row.desired, renderDigest } };
  };
  for (const put of [holding("shop.web", rendering), holding("bank.web", elsewhere)])
    await api.table.write([{ put, when: "absent" }]);
  for (const [name, digest] of [
    ["app", former],
    ["app", current],
    ["other", elsewhere],
  ] as const) {
    const key = keys.object("payments", "Source", name);
    const row = await api.table.get(key);
    if (row === undefined) throw new Error(`no Source ${name}`);
    const at = "2026-11-20T06:10:00.000Z";
    const artifact = {
      revision: "main@sha1:9f2c1ab",
      digest,
      sizeBytes: 1,
      files: 1,
      storedAt: at,
      subject: "change",
      author: "Ana <ana@acme.io>",
    };
    const put = { ...row, status: { ...row.status, artifact }, version: row.version + 1 };
    await api.table.write([
      { put, when: { version: row.version } },
      { put: revisionRow(row, artifact, `${at}${digest}`) },
    ]);
  }
  return api;
}

describe("download URLs of renderings and artifacts", () => {
  test("the API returns URLs of the renderings that a group's Syncs refer to, and logs who asked", async () => {
    const api = await withContents();
    api.takeMessages();
    const { status, body } = await api.call("POST", `${group}/contents`, bodies.renderings(rendering));
    const url = `https://blobs.example/renderings/${"a".repeat(64)}.json`;
    expect([status, body]).toEqual([200, { renderings: { [rendering]: url } }]);
    expect(api.log).toContainEqual(
      expect.objectContaining({ message: "contents handed out", principal, renderings: [rendering], name: "shop" }),
    );
    expect(api.takeMessages()).toEqual([]);
  });

  test.each([current, former])("the API returns URLs of the artifacts that a Source has or had: %s", async (digest) => {
    const api = await withContents();
    const { status, body } = await api.call("POST", `${ns}/sources/app/contents`, bodies.artifacts(digest));
    const url = `https://blobs.example/artifacts/${digest.slice("sha256:".length)}.tar.gz`;
    expect([status, body]).toEqual([200, { artifacts: { [digest]: url } }]);
    expect(api.log).toContainEqual(
      expect.objectContaining({ message: "contents handed out", principal, artifacts: [digest], name: "app" }),
    );
  });

  const lost = `sha256:${"0".repeat(64)}`;
  test.each([
    ["an unknown group", "syncgroups/none", bodies.renderings(rendering), "SyncGroup payments/none does not"],
    ["an unknown Sync", "syncs/none", bodies.renderings(rendering), "Sync payments/none does not exist"],
    ["an unknown rendering", "syncgroups/shop", bodies.renderings(lost), `has no rendering ${lost}`],
    [
      "another group's rendering",
      "syncgroups/shop",
      bodies.renderings(elsewhere, { sync: "bank.web" }),
      `Sync payments/bank.web on cluster c1 of SyncGroup shop has no rendering ${elsewhere}; read the fleet again`,
    ],
    [
      "a rendering on another cluster",
      "syncgroups/shop",
      bodies.renderings(rendering, { cluster: "c2" }),
      `Sync payments/shop.web on cluster c2 of SyncGroup shop has no rendering ${rendering}`,
    ],
    ["an unknown Source", "sources/none", bodies.artifacts(current), "Source payments/none does not exist"],
    ["another Source's artifact", "sources/app", bodies.artifacts(elsewhere), `has no artifact ${elsewhere}`],
  ] as const)("the API returns no URL of %s", async (_what, of, body, message) => {
    const api = await withContents();
    const answer = await api.call("POST", `${ns}/${of}/contents`, body);
    expect([answer.status, answer.body.message]).toEqual([404, expect.stringContaining(message)]);
    expect(JSON.stringify(answer.body)).not.toContain("https://blobs");
    expect(api.log.map(({ message }) => message)).not.toContain("contents handed out");
  });

  test.each(["../plans/x", "sha256:short", 7])("the API refuses %j, which is no digest", async (wrong) => {
    const api = await withContents();
    for (const [of, body] of [
      ["sources/app", bodies.artifacts(wrong)],
      ["syncgroups/shop", bodies.renderings(wrong)],
    ] as const) {
      const answer = await api.call("POST", `${ns}/${of}/contents`, body);
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringMatching(/artifacts\[0]|renderings\[0]/),
      ]);
    }
  });
});
