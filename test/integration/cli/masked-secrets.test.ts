// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is substituted
/** No output shows the values of a Secret, neither where the Secret is shown nor where it is wrong. */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { assignFleet, storeRendering } from "#test/integration/cli/assigned-fleet.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const [source = "", , group = ""] = fleet.split("---\n");

/** Every secret value contains this text. */
const mark = "hunter2";
const encoded = (text: string) => Buffer.from(text).toString("base64");
/** The secret values in each form in which they may be written or cut. */
const secretForms = [mark, encoded(mark).slice(0, 9), "987654321", encoded("987654321").slice(0, 9)];

let cli: CliFixture;
let folders = 0;

beforeAll(async () => {
  cli = await startCliFixture();
  cli.write(
    "group.yaml",
    `${source}---\n${group.replace("source: app", "source: app, apply: {defaultNamespace: shop}")}`,
  );
  expect(await cli.run("apply -f group.yaml -q --yes")).toMatchObject({ code: 0 });
  const before: readonly ManifestObject[] = [
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s", namespace: "shop" },
      data: { p: encoded(`${mark}-old`) },
    },
    { apiVersion: "v1", kind: "Secret", metadata: { name: "gone", namespace: "shop" }, stringData: { p: mark } },
  ];
  await assignFleet(cli, [{ name: "c1", assigned: await storeRendering(cli, before) }]);
});

afterAll(() => cli.stop());

function folderOf(files: Readonly<Record<string, string>>): string {
  folders++;
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(cli.folder, `f${folders}`, dirname(name)), { recursive: true });
    cli.write(`f${folders}/${name}`, text);
  }
  return `f${folders}`;
}

const everyCommand = [
  "render shop --show-origin",
  "render shop -o json",
  "plan shop --all",
  "plan shop -o yaml",
  "diff shop",
  "diff shop -o json",
];
/** An error has the same text in every command, so that two commands suffice. */
const someCommands = ["render shop", "plan shop -o json"];

/** The whole output of the commands. */
async function said(commands: readonly string[], folder: string, line = ""): Promise<string> {
  const texts: string[] = [];
  for (const command of commands) {
    const ran = await cli.run(`${command} --source app=${folder}${line}`);
    texts.push(`${ran.out}${ran.err}`);
  }
  return texts.join("\n");
}

function expectNothingReported(text: string): void {
  for (const each of secretForms) expect(text).not.toContain(each);
}

const secret = (rest: string) => `apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\n${rest}\n`;
const password = secret(`stringData: {p: ${mark}}`);

describe("values of a Secret are masked", { timeout: 300_000 }, () => {
  test.each([
    ["in data and stringData", secret(`data: {a: ${encoded(mark)}}\nstringData: {b: ${mark}, "c\\nd": "x ${mark}"}`)],
    ["in a text of several lines", secret(`stringData:\n  dsn: |\n    user: u\n    pass: ${mark}`)],
    [
      "in kubectl's last-applied annotation",
      `apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"p":"${encoded(mark)}"}}'}}\n`,
    ],
    [
      "in a list of objects",
      `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, stringData: {p: ${mark}}}\n`,
    ],
    [
      "in a list of Secrets",
      `apiVersion: v1\nkind: SecretList\nitems:\n- {metadata: {name: s, namespace: shop}, stringData: {p: ${mark}}}\n`,
    ],
  ])("no output shows the values of a Secret %s", async (_where, text) => {
    const all = await said(everyCommand, folderOf({ "s.yaml": text }));
    expect(all).toContain("***");
    expectNothingReported(all);
  });

  test.each([
    ["a number, which is no text", { "s.yaml": secret("stringData: {p: 987654321}") }],
    ["data that is no base64", { "s.yaml": secret(`data: {p: "${mark}!"}`) }],
    ["data that is a text", { "s.yaml": secret(`data: "${mark}"`) }],
    ["data that is a list", { "s.yaml": secret(`data: [${mark}]`) }],
    ["a map in it", { "s.yaml": secret(`stringData: {p: {q: ${mark}}}`) }],
    ["a quote that is not closed", { "s.yaml": secret(`stringData:\n  p: "${mark}\n  q: 1`) }],
    ["a value with a colon", { "s.yaml": secret(`stringData:\n  p: ${mark}: x\n  q: - ${mark}`) }],
    ["a key that is there twice", { "s.yaml": secret(`stringData: {p: ${mark}, p: ${mark}-2}`) }],
    ["an alias of nothing", { "s.yaml": secret(`stringData: {p: *${mark}}`) }],
    ["a tag of a handle", { "s.yaml": secret(`stringData: {p: !${mark}!x y}`) }],
    ["an anchor of nothing", { "s.yaml": secret(`stringData: {p: &${mark}}`) }],
    ["an escape that is none", { "s.yaml": secret(`stringData: {p: "${mark}\\q"}`) }],
    ["a directive", { "s.yaml": `%${mark}\n---\n${password}` }],
    ["a tag of its own", { "s.yaml": secret(`stringData: {p: !${mark} x}`) }],
    [
      "a generator of kustomize",
      { "kustomization.yaml": `resources: [none.yaml]\nsecretGenerator: [{name: s, literals: ["p=${mark}"]}]\n` },
    ],
    ["a literal that is none", { "kustomization.yaml": `secretGenerator: [{name: s, literals: ["${mark}"]}]\n` }],
    [
      "a patch without a target",
      {
        "kustomization.yaml": `resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: '[{"op": "replace", "path": "/data/none", "value": "${mark}"}]'}]\n`,
        "s.yaml": password,
      },
    ],
    [
      "an invalid patch",
      {
        "kustomization.yaml": `resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: '[{"op": "${mark}"'}]\n`,
        "s.yaml": password,
      },
    ],
    [
      "a patch that is neither kind of patch",
      {
        "kustomization.yaml": `resources: [s.yaml]\npatches: [{patch: "kind: Secret\\nstringData: {p: ${mark}}"}]\n`,
        "s.yaml": password,
      },
    ],
    [
      "a replacement within a text",
      {
        "kustomization.yaml": `resources: [s.yaml]\nreplacements: [{source: {kind: Secret, fieldPath: stringData.p}, targets: [{select: {kind: Secret}, fieldPaths: [stringData.p.q]}]}]\n`,
        "s.yaml": password,
      },
    ],
    [
      "a replacement by a missing part",
      {
        "kustomization.yaml": `resources: [s.yaml]\nreplacements: [{source: {kind: Secret, fieldPath: stringData.p, options: {delimiter: "-", index: 5}}, targets: [{select: {kind: Secret}, fieldPaths: [stringData.p]}]}]\n`,
        "s.yaml": password,
      },
    ],
    [
      "a duplicate Secret",
      { "kustomization.yaml": "resources: [s.yaml, t.yaml]\n", "s.yaml": password, "t.yaml": password },
    ],
    ["a Secret that is there twice, in plain files", { "s.yaml": password, "t.yaml": password }],
  ])("an error beside a Secret shows none of its values: %s", async (_what, files) => {
    expectNothingReported(await said(someCommands, folderOf(files as Readonly<Record<string, string>>)));
  });

  test.each([
    ["a variable that is not closed", `stringData: {p: "\${${mark}"}`],
    ["a default of a variable that is refused", `stringData: {p: "\${NONE:?${mark}}"}`],
    ["a variable that nobody sets", `stringData: {p: "${mark} \${NONE}"}`],
  ])("an error of a variable shows no value of a Secret: %s", async (_what, rest) => {
    const own = group.replace("source: app", "source: app, substitute: true, apply: {defaultNamespace: shop}");
    cli.write("substituted.yaml", `${source}---\n${own}`);
    expectNothingReported(await said(someCommands, folderOf({ "s.yaml": secret(rest) }), " -f substituted.yaml"));
  });

  test.each([
    ["a value of another type", `{{ .Values.password.deeper }}`],
    ["a value that is no list", `{{ range .Values.password }}{{ end }}`],
    ["a value that is no number", `{{ index (list 1) .Values.password }}`],
    ["invalid YAML", `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: "{{ .Values.password }}\n`],
    ["chance", `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: "${mark}{{ randAlphaNum 8 }}"}\n`],
    ["nothing", `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: "{{ .Values.password }}"}\n`],
  ])("an error of a chart that is given a Secret's value shows none of it: %s", async (_what, template) => {
    const folder = folderOf({
      "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
      "values.yaml": `password: ${mark}\n`,
      "env.yaml": `password: ${mark}-env\n`,
      "templates/s.yaml": template,
    });
    const helm = `render: {helm: {valuesFrom: [{path: env.yaml}]}}`;
    cli.write(
      "chart.yaml",
      `${source}---\n${group.replace("source: app", `source: app, ${helm}, apply: {defaultNamespace: shop}`)}`,
    );
    expectNothingReported(await said(someCommands, folder, " -f chart.yaml"));
  });

  test("the origins of a Secret that only an install has are masked", async () => {
    const folder = folderOf({
      "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
      "env.yaml": `password: ${mark}\ntier: gold\n`,
      "templates/m.yaml":
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {tier: '{{ .Values.tier }}'}}\n",
      "templates/s.yaml": `{{ if .Release.IsInstall }}\n${secret('stringData: {p: "{{ .Values.password }}"}')}{{ end }}\n`,
    });
    const helm = "render: {helm: {valuesFrom: [{path: env.yaml}]}}";
    cli.write(
      "first.yaml",
      `${source}---\n${group.replace("source: app", `source: app, ${helm}, apply: {defaultNamespace: shop}`)}`,
    );
    const all = await said(["render shop --show-origin"], folder, " -f first.yaml");
    expect(all).toContain("gold");
    expect(all).toContain("for an upgrade");
    expectNothingReported(all);
  });

  test.each([
    [
      "is left out as a hook",
      secret(`stringData: {p: "{{ .Values.password }}"}`).replace(
        "{name: s,",
        "{name: s, annotations: {helm.sh/hook: test},",
      ),
    ],
    ["is a Secret by another way of writing", secret(`stringData: {p: "{{ .Values.password | upper }}"}`)],
    ["is a Secret by its digest", secret(`stringData: {p: "{{ .Values.password | sha256sum }}"}`)],
  ])("a value whose origin %s is masked", async (_how, text) => {
    const folder = folderOf({
      "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
      "env.yaml": `password: ${mark}\ntier: golden\n`,
      "templates/m.yaml":
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {tier: '{{ .Values.tier }}'}}\n",
      "templates/s.yaml": text,
    });
    const helm = "render: {helm: {valuesFrom: [{path: env.yaml}]}}";
    cli.write(
      "made.yaml",
      `${source}---\n${group.replace("source: app", `source: app, ${helm}, apply: {defaultNamespace: shop}`)}`,
    );
    const all = await said(["render shop --show-origin"], folder, " -f made.yaml");
    expect(all).toContain('values.tier = "golden"');
    expectNothingReported(all);
  });
});
