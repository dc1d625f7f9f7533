import { expect, test } from "vitest";
import { withoutWordsOfValues } from "#shared/source/helm/helm-words.ts";

test("the error about a file that is too large for Helm has neither its name nor a number", () => {
  const chart = { name: "small", folder: ".", files: new Map() };
  const said = 'chart file "secret.bin" is larger than the maximum file size 5242880';
  expect(withoutWordsOfValues(chart as never, said, "helm")).toBe(
    'chart file "***" is larger than the maximum file size ***',
  );
});
