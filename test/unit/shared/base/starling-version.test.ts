import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { starlingVersion } from "#shared/base/starling-version.ts";

test("the version is that of package.json", async () => {
  const text = await readFile(new URL("../../../../package.json", import.meta.url), "utf8");
  expect(JSON.parse(text)).toMatchObject({ version: starlingVersion });
});
