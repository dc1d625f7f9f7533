import { expect, test } from "vitest";
import { withoutWordsOfValues } from "#shared/source/helm/helm-words.ts";

test("a file that is too large for Helm is told to be so, without its name and any number", () => {
  const chart = { name: "small", folder: ".", files: new Map() };
  const said = 'chart file "secret.bin" is larger than the maximum file size 5242880';
  expect(withoutWordsOfValues(chart as never, said, "helm")).toBe(
    'chart file "***" is larger than the maximum file size ***',
  );
});
