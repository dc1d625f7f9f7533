import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseDocument, type WritableKind } from "#shared/fleet/kinds/document.ts";
import { fieldsOf } from "#shared/fleet/kinds/kind-fields.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import type { OwnerState } from "#shared/fleet/rows/object-rows.ts";
import type { SyncStateWord } from "#shared/fleet/rows/sync-state-of.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const docs = new URL("../../../docs/", import.meta.url);
const page = readFileSync(new URL("kinds.md", docs), "utf8");
const kinds: readonly WritableKind[] = [
  "Source",
  "Receiver",
  "ClusterDiscovery",
  "Cluster",
  "ClusterValues",
  "Window",
  "SyncGroup",
  "Sync",
];
/** Fields of an override that its template has, too. */
const override = /^spec\.templates\[\]\.overrides\[\]\.(?!clusters|disabled)/;
/** Fields of a template that a Sync has, too. */
const template = /^spec\.templates\[\]\.(?!name$|overrides)/;

function spec(kind: string): string {
  return readFileSync(new URL(`spec/${kind.toLowerCase()}.md`, docs), "utf8");
}

function section(title: string, of = page): string {
  const start = of.indexOf(`\n## ${title}\n`);
  expect(start, `section ${title}`).toBeGreaterThan(0);
  const end = of.indexOf("\n## ", start + 1);
  return of.slice(start, end === -1 ? undefined : end);
}

/** The words in the table of a page's states. */
function statesOf(kind: WritableKind): readonly string[] {
  const rows = section("Status", spec(kind)).matchAll(/^\| (`[^|]*`) \|/gm);
  return [...rows].flatMap(([, cell = ""]) => cell.replaceAll("`", "").split(", ")).sort();
}

describe.each(kinds)("the page of %s", (kind) => {
  test("the page has the sections Example, Fields, Status and Working with, in this order", () => {
    const form = ["Example", "Fields", "Status", "Working with"];
    const titles = [...spec(kind).matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title);
    expect(titles[0]).toBe(kind);
    expect(titles.filter((title) => form.includes(title))).toEqual(form);
  });
});

test("docs/spec has a page for each kind, and docs/kinds.md links to it", () => {
  const pages = readdirSync(new URL("spec/", docs));
  expect(pages.sort()).toEqual([...kinds, "Rollout", "Common"].map((kind) => `${kind.toLowerCase()}.md`).sort());
  expect(page).toContain("(spec/common.md)");
  for (const kind of [...kinds, "Rollout"]) expect(page).toContain(`| [${kind}](spec/${kind.toLowerCase()}.md)`);
});

describe("docs/spec/sync.md", () => {
  test("a Sync has the fields of a template except for name and overrides, as the page says", () => {
    const said = (kind: WritableKind, of: RegExp) =>
      fieldsOf(kind).flatMap(({ path, type, required, most = "", default: unsaid = "" }) =>
        of.test(path) ? [`${path.replace(of, "")} | ${type} | ${required} | ${unsaid} | ${most}`] : [],
      );
    expect(said("Sync", /^spec\.(?!cluster$)/).sort()).toEqual(said("SyncGroup", template).sort());
  });

  test("the page lists every state of a Sync, and no other", () => {
    const all: Readonly<Record<SyncStateWord | "OutOfSync" | "Drifted" | "Frozen" | "Unreadable", true>> = {
      Assigned: true,
      Applying: true,
      Verifying: true,
      Ready: true,
      OutOfSync: true,
      Drifted: true,
      Retrying: true,
      Failed: true,
      Unreachable: true,
      Reachable: true,
      Frozen: true,
      Gone: true,
      Orphaned: true,
      Rejected: true,
      Unreadable: true,
    };
    expect(statesOf("Sync")).toEqual(Object.keys(all).sort());
  });
});

test("docs/spec/syncgroup.md lists every state of a group, and no other", () => {
  const all: Readonly<Record<OwnerState, true>> = {
    Complete: true,
    Drifted: true,
    Degraded: true,
    Reconciling: true,
    NoClusters: true,
    ClusterNotFound: true,
    RollingBack: true,
    Rolling: true,
    Waiting: true,
    Halted: true,
    Suspended: true,
    Held: true,
    Guarded: true,
    Frozen: true,
    Stalled: true,
    Deleting: true,
  };
  expect(statesOf("SyncGroup")).toEqual(Object.keys(all).sort());
});

describe("docs/spec/syncgroup.md", () => {
  test("an override has the template's fields except for name, source, revision and overrides, as the page says", () => {
    const said = (of: RegExp) =>
      fieldsOf("SyncGroup").flatMap(({ path, type, most = "" }) =>
        of.test(path) ? [`${path.replace(of, "")} | ${type} | ${most}`] : [],
      );
    const template = said(/^spec\.templates\[\]\.(?!name$|source$|revision$|overrides)/);
    expect(said(override).sort()).toEqual(template.sort());
  });

  test("the example in docs/helm.md is a valid SyncGroup", () => {
    const text = readFileSync(new URL("../../../docs/helm.md", import.meta.url), "utf8");
    const [document] = parseDocuments(/```yaml\n(.*?)```/s.exec(text)?.[1] ?? "", "helm.md");
    const parsed = parseDocument(document?.value);
    expect(parsed).toMatchObject({ ok: true, document: { kind: "SyncGroup" } });
    if (parsed.ok) expect(semanticProblems(parsed.document)).toEqual([]);
  });
});
