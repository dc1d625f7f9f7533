import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { problemLine } from "#cli/session/read-documents.ts";
import { lineFinder } from "#shared/source/yaml/line-finder.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const text = `kind: Nothing
---
kind: SyncGroup
metadata:
  name: shop
  labels:
    app.kubernetes.io/name: a b
    app: b c
spec:
  templates:
    - name: a
    - path: x
      name: 3
`;

describe("the line number of a problem in a document", () => {
  const [, second] = parseDocuments(text, "fleet.yaml");
  const document = {
    value: second?.value ?? null,
    file: "fleet.yaml",
    lineOf: lineFinder(text),
    document: 2,
    within: [],
  };

  test.each([
    ["", 3],
    ["spec.templates[1].name", 13],
    ["metadata.labels.app.kubernetes.io/name", 7],
    ["metadata.labels.app", 8],
    ["spec.absent.below", 9],
    ["spec.templates[1].absent", 12],
  ])("a problem of the field `%s` is reported on line %i", (field, line) => {
    const shown = field === "" ? "" : `${field} `;
    expect(problemLine(document, { field, message: "is wrong" })).toBe(
      `fleet.yaml:${line}: SyncGroup/shop: ${shown}is wrong`,
    );
  });
});

test.each([
  ["an empty file", "empty.yaml", "starling init   (writes an example fleet)"],
  ["a folder", ".", "add -R to read subfolders"],
])("%s without a document is refused with a command that helps", async (_what, path, next) => {
  const folder = mkdtempSync(join(tmpdir(), "starling-read-"));
  writeFileSync(join(folder, "empty.yaml"), "# nothing yet\n");
  const { code, err } = await runWithoutTerminal(["validate", "-f", path], { folder, patienceMs: 10_000 });
  expect({ code, err }).toEqual({ code: 2, err: `error: there is no document in ${path}\n  next: ${next}\n` });
});
