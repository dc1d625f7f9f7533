import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { replayTables } from "#test/contract/local/apiserver/replay-tables.ts";

const document = new URL("../../../../docs/testing.md", import.meta.url);
const marked = /(?<=<!-- recorded answers: [^>]*-->\n\n)[\s\S]*?(?=\n\n<!-- end of recorded answers -->)/;

/** `STARLING_UPDATE_DOCS=1` writes the tables again. */
test("the tables in docs/testing.md have the numbers of compared steps, and the reasons for the others", () => {
  const text = readFileSync(document, "utf8");
  const tables = replayTables();
  if (process.env.STARLING_UPDATE_DOCS === "1")
    writeFileSync(
      document,
      text.replace(marked, () => tables),
    );
  else expect(marked.exec(text)?.[0]).toBe(tables);
});
