import { describe, expect, test } from "vitest";
import { formatHistory, revisionsTable } from "#cli/format/history-text.ts";
import type { CommitItem, HistoryItem } from "#shared/fleet/api/history-item.ts";

const now = new Date("2026-03-01T10:00:00Z");
const at = "2026-03-01T09:00:00Z";
const digest = `sha256:${"5".repeat(64)}`;
const chart: CommitItem = { revision: `4.3.0@sha256:${"a".repeat(64)}`, title: "web 4.3.0 (app 7)", author: "" };
const commit: CommitItem = {
  revision: `main@sha1:${"b".repeat(40)}`,
  id: "b".repeat(40),
  title: "Fix the price",
  author: "Ana <ana@acme.io>",
};

function linesOf(revision: string, known?: CommitItem): readonly string[] {
  const item: HistoryItem = {
    ...{ number: 3, revision, trigger: "plan", at, phase: "Complete" },
    clusters: { done: 4, failed: 0, size: 4 },
    templates: [{ name: "web", source: "web", revision, ...(known === undefined ? {} : { commit: known }) }],
  };
  return formatHistory([item], { name: "web", now, links: "hidden" }).split("\n");
}

describe("the history of a group", () => {
  test("a chart has its version, and no author", () => {
    expect(linesOf(chart.revision, chart)).toContain('  web   4.3.0@sha256:aaaaaaa   "web 4.3.0 (app 7)"');
    expect(linesOf(commit.revision, commit)).toContain(
      '  web   main@sha1:bbbbbbb   "Fix the price" (Ana <ana@acme.io>)',
    );
  });

  test("only what came from git is called a commit", () => {
    expect(linesOf(chart.revision)).toContain("  web   4.3.0@sha256:aaaaaaa   (its title is no longer known)");
    expect(linesOf(commit.revision)).toContain("  web   main@sha1:bbbbbbb   (its commit is no longer known)");
  });
});

test("the revisions of a chart are contents without an author, and those of git are commits", () => {
  const table = (item: CommitItem) => revisionsTable([{ ...item, at, digest }], now, undefined);
  expect(table(chart)).toMatchObject({
    columns: ["REVISION", "SINCE", "AGE", "AUTHOR", "CONTENT"],
    rows: [["4.3.0@sha256:aaaaaaa", expect.anything(), expect.anything(), "-", "web 4.3.0 (app 7)"]],
  });
  expect(table(commit).columns).toContain("COMMIT");
});
