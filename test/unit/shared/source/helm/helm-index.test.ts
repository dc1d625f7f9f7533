import { describe, expect, test } from "vitest";
import { chartUrl, chartVersions } from "#shared/source/helm/helm-index.ts";

const hex = "ab".repeat(32);
const web = [
  "  web:",
  "  - version: 1.2.0",
  `    digest: ${hex}`,
  "    urls:",
  "    - web-1.2.0.tgz",
  "    - https://mirror.example/web.tgz",
  "  - version: 1.1.0",
  "    urls: [web-1.1.0.tgz]",
];
const expected = [
  { version: "1.2.0", url: "web-1.2.0.tgz", digest: hex },
  { version: "1.1.0", url: "web-1.1.0.tgz" },
];
const other = ["  other:", "  - version: 9.0.0", "    urls: [o.tgz]"];
const lines = (...all: readonly (readonly string[])[]) => `${all.flat().join("\n")}\n`;

describe("the versions of a chart in an index", () => {
  test.each<[string, string]>([
    ["alone", lines(["apiVersion: v1", "entries:"], web)],
    ["before another one", lines(["apiVersion: v1", "entries:"], web, other, ["generated: now"])],
    ["after another one", lines(["apiVersion: v1", "entries:"], other, web, ["generated: now"])],
    ["in an index that begins with its entries", lines(["entries:"], other, web, ["apiVersion: v1"])],
    [
      "with further indentation",
      lines(
        ["entries:"],
        [...other, ...web].map((line) => `  ${line}`),
      ),
    ],
    ["in quotes", lines(["entries:"], ['  "web":'], web.slice(1))],
    [
      "with a description that looks like a chart",
      lines(["entries:"], ["  z:", "  - description: |", "      web:", "    urls: [z]", "    version: 1.0.0"], web),
    ],
    [
      "with a comment between its versions",
      lines(["entries:"], web.slice(0, 6), ["  # old ones:"], web.slice(6), other),
    ],
    ["as JSON", JSON.stringify({ entries: { web: expected.map(({ url, ...rest }) => ({ ...rest, urls: [url] })) } })],
  ])("a chart that stands %s is found", (_, text) => {
    expect(chartVersions(text, "web")).toEqual(expected);
  });

  test("an index of 30 MB is read in the part about the chart [source.helm.large-index]", () => {
    const many = Array.from({ length: 60_000 }, (_, index) => [
      `  chart-${index}:`,
      `  - version: ${index}.0.0`,
      `    description: ${"x".repeat(450)}`,
      "    urls: [a.tgz]",
    ]);
    const text = lines(["entries:"], ...many, web);
    expect(text.length).toBeGreaterThan(30_000_000);
    expect(chartVersions(text, "web")).toEqual(expected);
  });

  test.each<[string, unknown]>([
    [lines(["entries:"], other), []],
    ["entries: {}\n", []],
    ["apiVersion: v1\n", "has no entries"],
    ["entries: [a]\n", []],
    ["entries:\n  web: 7\n", "has no list of versions for web"],
    ["{", expect.stringContaining("cannot be read")],
    ["a: [\n", expect.stringContaining("cannot be read")],
    [`# ${"x".repeat(34_000_000)}\nentries: {}\n`, expect.stringContaining("are too many to read as a whole")],
  ])("another index is an answer, too (%#)", (text, answer) => {
    expect(chartVersions(text, "web")).toEqual(answer);
  });

  test("a version without a URL, or with one that is no text, does not count", () => {
    const text =
      "entries:\n  web:\n  - version: 1.0.0\n  - version: 2.0.0\n    urls: []\n  - version: 3\n    urls: [a]\n  - urls: [a]\n";
    expect(chartVersions(text, "web")).toEqual([]);
  });

  test("a chart named like a member of every object does not exist", () => {
    expect(chartVersions(lines(["entries:"], web), "constructor")).toEqual([]);
  });
});

test.each([
  ["web-1.0.0.tgz", "https://charts.example/stable/web-1.0.0.tgz"],
  ["/web-1.0.0.tgz", "https://charts.example/web-1.0.0.tgz"],
  ["//other.example/web.tgz", "https://other.example/web.tgz"],
  ["https://other.example/web.tgz", "https://other.example/web.tgz"],
  ["http://charts.example/web.tgz", undefined],
  ["file:///etc/passwd", undefined],
  ["javascript:0", undefined],
  ["https://[", undefined],
])("an index that came by https leads from %s to %s [source.helm.encrypted]", (named, url) => {
  expect(chartUrl(named, "https://charts.example/stable/index.yaml")).toBe(url);
});
