/** The history of a group, with commits and authors, and the revisions that a Source had. */
import { describe, expect, test } from "vitest";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import type { PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import { type Answer, type ApiFixture, apiFixture, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { rolloutRow, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

const commit = (digit: number) => String(digit).repeat(40);
const revision = (digit: number) => `main@sha1:${commit(digit)}`;
const group = "/v1/namespaces/payments/syncgroups/shop/history";

function artifact(digit: number): Artifact {
  return {
    revision: revision(digit),
    digest: `sha256:${digit}`,
    sizeBytes: 1,
    files: 1,
    storedAt: "2026-11-20T07:00:00.000Z",
    subject: `change ${digit}`,
    author: "Ana <ana@acme.io>",
    committedAt: `2026-11-20T06:0${digit}:00.000Z`,
  };
}

function plan(digit: number, name = "web") {
  const [template] = rolloutRow(1).plan.templates;
  const planned: PlannedTemplate = { ...(template as PlannedTemplate), name, revision: revision(digit) };
  return { plan: { templates: [planned], planHash: `sha256:${digit}` }, revision: revision(digit) };
}

/** The Source had the revisions 1 to 5; there are rollouts of 1, 4 and 5. */
async function withHistory(): Promise<ApiFixture> {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", {
    documents: [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])],
  });
  for (const digit of [1, 2, 3, 4, 5]) {
    const at = `2026-11-20T06:1${digit}:00.000Z`;
    await api.table.write([{ put: revisionRow({ namespace: "payments", name: "app" }, artifact(digit), at) }]);
  }
  for (const [number, digit] of [
    [1, 1],
    [2, 4],
    [3, 5],
  ] as const) {
    await storeRollout(api, {
      number,
      states: { canary: ["Succeeded"], rest: [number === 3 ? "Failed" : "Succeeded"] },
      rollout: plan(digit),
    });
  }
  return api;
}

describe("the history of a group", () => {
  test("the history has each rollout with its commit, author and link, and the commits in between", async () => {
    const { status, body } = await (await withHistory()).call("GET", group);
    expect(status).toBe(200);
    expect(body.items.map(({ number, clusters }: Answer) => [number, clusters])).toEqual([
      [3, { done: 1, failed: 1, size: 2 }],
      [2, { done: 2, failed: 0, size: 2 }],
      [1, { done: 2, failed: 0, size: 2 }],
    ]);
    const [template] = body.items[1].templates;
    expect(template).toMatchObject({
      name: "web",
      source: "app",
      commit: {
        id: commit(4),
        title: "change 4",
        author: "Ana <ana@acme.io>",
        committedAt: "2026-11-20T06:04:00.000Z",
        link: `https://github.com/acme/app/commit/${commit(4)}`,
      },
      from: revision(1),
      compare: `https://github.com/acme/app/compare/${commit(1)}...${commit(4)}`,
    });
    expect(template.commits.map(({ title }: Answer) => title)).toEqual(["change 4", "change 3", "change 2"]);
    expect(body.items[2].templates[0]).not.toHaveProperty("from");
  });

  test("the history compares the last rollout of a page with the first one of the next page", async () => {
    const api = await withHistory();
    const first = (await api.call("GET", `${group}?limit=2`)).body;
    expect(first.items.map(({ templates }: Answer) => templates[0].from)).toEqual([revision(4), revision(1)]);
    const rest = (await api.call("GET", `${group}?limit=2&continue=${first.metadata.continue}`)).body;
    expect(rest.items.map(({ number }: Answer) => number)).toEqual([1]);
    expect(rest.metadata.continue).toBeUndefined();
  });

  test("the history of a Sync on a cluster has the outcome of each rollout there, and only that Sync's templates", async () => {
    const api = await withHistory();
    const path = "/v1/namespaces/payments/syncs/shop.web/history";
    const { body } = await api.call("GET", `${path}?cluster=c2`);
    expect(body.items.map(({ onCluster }: Answer) => onCluster.state)).toEqual(["Failed", "Succeeded", "Succeeded"]);
    expect(body.items[0].onCluster).toMatchObject({ stage: "rest", reason: "ApplyFailed: 1 of 4 objects failed" });
    expect((await api.call("GET", "/v1/namespaces/payments/syncs/shop.other/history")).body.items[0].templates).toEqual(
      [],
    );
  });

  test("the history has no commit for a revision whose row has expired", async () => {
    const api = await withHistory();
    await storeRollout(api, { number: 4, states: { canary: ["Succeeded"] }, rollout: plan(9) });
    const [template] = (await api.call("GET", group)).body.items[0].templates;
    expect(template).not.toHaveProperty("commit");
    expect(template).not.toHaveProperty("commits");
    expect(template.compare).toBe(`https://github.com/acme/app/compare/${commit(5)}...${commit(9)}`);
  });
});

test("a Source lists the revisions that it had, the newest first, page by page", async () => {
  const api = await withHistory();
  const path = "/v1/namespaces/payments/sources/app/revisions?limit=3";
  const { body } = await api.call("GET", path);
  expect(body.items.map(({ title, digest }: Answer) => `${title} ${digest}`)).toEqual([
    "change 5 sha256:5",
    "change 4 sha256:4",
    "change 3 sha256:3",
  ]);
  const rest = await api.call("GET", `${path}&continue=${encodeURIComponent(body.metadata.continue)}`);
  expect(rest.body.items.map(({ title }: Answer) => title)).toEqual(["change 2", "change 1"]);
});
