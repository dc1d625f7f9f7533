import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { isJsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import { listAt } from "#shared/kube/kube-object.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { scalars } from "#test/support/yaml-scalars.ts";

const run = promisify(execFile);

/** kubectl reads unsigned integers beyond 2^63 as floats; Starling sends the digits, and the API server decides. */
const deviations = new Set(["12345678901234567890"]);

test("the golden table of scalars agrees with kubectl", async () => {
  const rows = scalars.filter(([scalar, json]) => json !== "ERR" && !deviations.has(scalar));
  const text = rows
    .map(([scalar], index) => `apiVersion: example.com/v1\nkind: W\nmetadata: {name: w${index}}\nk: ${scalar}\n`)
    .join("---\n");
  const folder = await mkdtemp(join(tmpdir(), "starling-yaml-"));
  try {
    const file = join(folder, "all.yaml");
    await writeFile(file, text);
    const { stdout } = await run(await locateKubectl(""), ["annotate", "--local", "-f", file, "x=", "-o", "json"]);
    // kubectl prints one document after the other; a closing brace in the first column ends each.
    const theirs = stdout.split(/(?<=^\}\n)/m).map((document) => parseJson(document));
    const flat = theirs.flatMap((value) =>
      isJsonObject(value) && value.kind === "List" ? listAt(value, "items") : [value],
    );
    const ours = parseManifests(text, "all.yaml").map(({ object }) => object);
    const shown = (values: readonly unknown[]) =>
      values.map((value, index) => [rows[index]?.[0], stringifyJson(isJsonObject(value) ? value.k : value)]);
    expect(shown(ours)).toEqual(shown(flat));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
