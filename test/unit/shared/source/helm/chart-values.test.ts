import { describe, expect, test } from "vitest";
import { chartValues } from "#shared/source/helm/chart-values.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";

const digest = `sha256:${"a".repeat(64)}`;
const mebibyte = 1024 ** 2;

function fileOf(path: string, content: string | Uint8Array) {
  return {
    path,
    executable: false,
    content: typeof content === "string" ? new TextEncoder().encode(content) : content,
  };
}

/** The values of a release whose files are in another Source, in their order. */
function valuesFrom(contents: readonly (string | Uint8Array)[]): readonly string[] {
  const files = contents.map((content, index) => fileOf(`${index}.yaml`, content));
  const valuesFrom = files.map(({ path }) => ({
    path,
    optional: false,
    from: { source: "fleet", artifactDigest: digest },
  }));
  const release = { releaseName: "a", namespace: "a", crds: "Skip", lookup: "Refuse", hooks: "Honor", valuesFrom };
  return chartValues(release as HelmRelease, [], new Map([[digest, files]]));
}

describe("files of values", () => {
  const bomb = `a: &a [${"x, ".repeat(1000)}x]\n${Array.from({ length: 2000 }, (_, i) => `k${i}: *a`).join("\n")}\n`;
  test.each<[string, readonly (string | Uint8Array)[], RegExp]>([
    [
      "a file of 100 MiB",
      [`k: ${"x".repeat(100 * mebibyte)}\n`],
      /^0\.yaml: makes the files of values larger than 4194304 bytes/,
    ],
    [
      "two files that are too large together",
      Array(2).fill(`k: ${"x".repeat(3 * mebibyte)}\n`),
      /^1\.yaml: makes the files of values larger/,
    ],
    ["aliases that are too large when they are written out", [bomb], /^0\.yaml: makes the files of values larger/],
    ["a file in Latin-1", [Buffer.from("k: \xfc\n", "latin1")], /^0\.yaml: is not UTF-8; save it as UTF-8$/],
  ])("files of values with %s are refused", (_what, contents, said) => {
    expect(() => valuesFrom(contents)).toThrow(said);
  });

  test("a file of values is found among thousands, and the others are not read", () => {
    const files = Array.from({ length: 20_000 }, (_, index) => fileOf(`regions/${index}.yaml`, "{ no YAML"));
    const path = "regions/7.yaml";
    const others = new Map([[digest, [...files.filter((file) => file.path !== path), fileOf(path, "a: b\n")]]]);
    const from = { source: "fleet", artifactDigest: digest };
    const release = { valuesFrom: [{ path, optional: false, from }] } as unknown as HelmRelease;
    expect(chartValues(release, [], others)).toEqual(['{"a":"b"}']);
  });
});
