import { expect, test } from "vitest";
import { columnsText } from "#cli/format/columns-text.ts";
import { parseColumns } from "#cli/output/parse-columns.ts";

const items = [
  {
    metadata: { labels: { env: "prod", "x.y/z": "q" }, name: "a" },
    spec: {
      big: 12345678,
      e: "",
      l: ["a", { k: "v" }],
      m: { a: "q", z: 1 },
      n: 1.5,
      t: true,
      tags: ["p", "q"],
      x: null,
    },
  },
  { metadata: { name: "bbbb" }, spec: { l: [], n: 2, t: false } },
];

function cells(text: string): readonly (readonly string[])[] {
  const [, ...lines] = columnsText({ items }, { columns: parseColumns(text), headers: "show" })
    .trimEnd()
    .split("\n");
  return lines.map((line) => line.split(/ {2,}/));
}

/** kubectl 1.32 printed these cells. */
test.each([
  [".metadata.name", "a", "bbbb"],
  ["metadata.name", "a", "bbbb"],
  ["{.metadata.name}", "a", "bbbb"],
  [".spec.n", "1.5", "2"],
  [".spec.big", "12345678", "<none>"],
  [".spec.x", "<none>", "<none>"],
  [".spec.l", "[a map[k:v]]", "[]"],
  [".spec.m", "map[a:q z:1]", "<none>"],
  [".spec.tags", "[p q]", "<none>"],
  [".spec.tags[*]", "p,q", "<none>"],
  [".metadata.labels.x\\.y/z", "q", "<none>"],
  [".metadata.labels['env']", "prod", "<none>"],
  ['.spec.l[?(@.k=="v")].k', "v", "<none>"],
  ["", "<none>", "<none>"],
])("a column of %s has the cells that kubectl prints", (path, first, second) => {
  expect(cells(`A:.metadata.name,B:${path}`)).toEqual([
    ["a", first],
    ["bbbb", second],
  ]);
});

test("columns stand below their headers, headers can be left out, and one object is one row", () => {
  const columns = parseColumns("NAME:.metadata.name,T:.spec.t,N:.spec.n");
  expect(columnsText({ items }, { columns, headers: "show" })).toBe(
    "NAME  T      N\na     true   1.5\nbbbb  false  2\n",
  );
  expect(columnsText(items[1], { columns, headers: "hide" })).toBe("bbbb  false  2\n");
});

test.each([
  ["A", "A is not a column; write HEADER:PATH, such as NAME:.metadata.name"],
  ["A:{.x", "{.x is not a single path; write .metadata.name or {.metadata.name}"],
  ["N:.metadata.name{.x}", "is not a single path"],
  ["A:.x[a]", "[a] is not an index, a slice or a key"],
])("the columns %s are refused, and the error shows what to write", (text, words) => {
  expect(() => parseColumns(text)).toThrow(words);
});
