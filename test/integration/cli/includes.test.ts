/** `spec.include` in the command: Sources that include each other are refused, and `describe` shows what is included. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
beforeAll(async () => {
  cli = await startCliFixture();
});
afterAll(() => cli.stop());

/** A document of a Source that includes others, as `{source: base}`. */
const sourceText = (name: string, ...include: readonly object[]) => `---
apiVersion: starling.dev/v1alpha1
kind: Source
metadata: { name: ${name}, namespace: payments }
spec:
  git: { url: "https://github.com/acme/${name}" }
${include.length === 0 ? "" : `  include: ${JSON.stringify(include)}\n`}`;

test.each(["validate -f circle.yaml", "apply -f circle.yaml --yes"])(
  "%s refuses Sources of one file that include each other, with the way and the line",
  async (line) => {
    cli.write(
      "circle.yaml",
      sourceText("a", { source: "c" }) + sourceText("b", { source: "a" }) + sourceText("c", { source: "b" }),
    );
    const { code, out, err } = await cli.run(line);
    expect(code).toBe(2);
    expect(`${out}${err}`).toContain(
      "circle.yaml:7: Source/a: spec.include leads back to the Source: a includes c includes b includes a: a Source cannot be a part of itself; take one of them out of spec.include",
    );
    expect(await cli.table.get(keys.object("payments", "Source", "a"))).toBeUndefined();
  },
);

test("validate refuses a Source that includes itself", async () => {
  cli.write("self.yaml", sourceText("a", { source: "a" }));
  const { code, out, err } = await cli.run("validate -f self.yaml");
  expect(code).toBe(2);
  expect(`${out}${err}`).toContain("self.yaml:7: Source/a: spec.include[0].source");
});

test("apply refuses a circle through Sources that are stored, and writes nothing", async () => {
  cli.write("first.yaml", sourceText("one", { source: "two" }) + sourceText("two", { source: "three" }));
  expect(await cli.run("apply -f first.yaml --yes")).toMatchObject({ code: 0 });
  cli.write("second.yaml", sourceText("three", { source: "one" }) + sourceText("four"));
  // One file alone says nothing of what is stored.
  expect(await cli.run("validate -f second.yaml")).toMatchObject({ code: 0 });
  const { code, err } = await cli.run("apply -f second.yaml --yes");
  expect(code).toBe(2);
  expect(err).toContain("spec.include leads back to the Source: three includes one includes two includes three");
  for (const name of ["three", "four"])
    expect(await cli.table.get(keys.object("payments", "Source", name))).toBeUndefined();
});

test("describe shows each included Source, its place, and the artifact that is a part of the Source's own one", async () => {
  cli.write(
    "app.yaml",
    sourceText("app", { source: "charts", fromPath: "charts/web", toPath: "vendor/web" }, { source: "policies" }) +
      sourceText("charts"),
  );
  expect(await cli.run("apply -f app.yaml --yes")).toMatchObject({ code: 0 });
  expect((await cli.run("describe source/app")).out).toMatch(
    /^Includes:\n {2}charts\/charts\/web in vendor\/web {3}not yet\n {2}policies in policies {3}not yet\n/m,
  );
  const [digest, included] = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`);
  const row = await cli.table.get(keys.object("payments", "Source", "app"));
  if (row === undefined || digest === undefined || included === undefined) throw new Error("no Source");
  const artifact: Artifact = {
    ...{
      revision: `main@sha1:${"c".repeat(40)}`,
      digest,
      sizeBytes: 1,
      files: 1,
      storedAt: "2026-11-20T06:00:00.000Z",
    },
    ...{ subject: "One", author: "Ana" },
    included: [
      {
        ...{ source: "charts", fromPath: "charts/web", toPath: "vendor/web" },
        ...{ revision: `main@sha1:${"d".repeat(40)}`, digest: included },
      },
    ],
  };
  const next: SourceRow = { ...row, version: row.version + 1, status: { ...row.status, artifact } };
  await cli.table.write([{ put: next }]);
  const { out } = await cli.run("describe source/app");
  expect(out).toMatch(/^ {2}charts\/charts\/web in vendor\/web {3}main@sha1:ddddddd {3}sha256:bbbbbbbbbbbb/m);
  expect(out).toMatch(/^ {2}policies in policies {3}not yet$/m);
  const resolved = await cli.run("source resolve app");
  expect(resolved.out).toContain(
    `\nIncludes:    charts/charts/web in vendor/web   main@sha1:${"d".repeat(40)}   ${included}\n`,
  );
  const listed = await cli.run("source artifacts app -o json");
  expect(JSON.parse(listed.out).items).toMatchObject([{ digest, included: artifact.included }]);
});
