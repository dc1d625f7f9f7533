import { expect, test } from "vitest";
import type { ListedHistory } from "#shared/fleet/api/history-item.ts";
import { historyPage } from "#shared/pages/history-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { textOf } from "#test/support/html-tables.ts";

const at = "2026-11-20T07:00:00.000Z";
const chart = { revision: `4.3.0@sha256:${"a".repeat(64)}`, title: "web 4.3.0 (app 7)", author: "" };

test("the history shows the version of a chart, and the values beside it with what they were before", async () => {
  const besides = [
    { source: "fleet", revision: `main@sha1:${"b".repeat(40)}`, from: `main@sha1:${"c".repeat(40)}` },
    { source: "secrets", revision: `main@sha1:${"d".repeat(40)}` },
  ];
  const item: ListedHistory = {
    ...{ number: 3, revision: chart.revision, trigger: "plan", at, phase: "Complete" },
    clusters: { done: 4, failed: 0, size: 4 },
    templates: [{ name: "web", source: "web", revision: chart.revision, commit: chart, besides }],
  };
  const owner = { kind: "SyncGroup", namespace: "shop", name: "web" } as const;
  const answer = { items: [item], metadata: {} };
  const { main } = await historyPage(async <T>() => answer as T, { owner, query: {} }, pageHost(new Date(at)));
  const text = textOf(String(main));
  expect(text).toContain("4.3.0@sha256:aaaaaaa web 4.3.0 (app 7)");
  expect(text).toContain("values of fleet: main@sha1:bbbbbbb from main@sha1:ccccccc");
  expect(text).toContain("values of secrets: main@sha1:ddddddd");
  expect(text).not.toContain("ddddddd from");
});
