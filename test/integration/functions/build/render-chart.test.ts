import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { loadAll } from "js-yaml";
import { describe, expect, test } from "vitest";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate, type HelmTemplateOptions } from "#shared/adapters/render/helm-template.ts";
import { type RenderedObjects, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { compareText } from "#shared/base/text-order.ts";
import { annotationsOf } from "#shared/kube/kube-object.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { below, shopChart } from "#test/support/chart-fixture.ts";

const run = promisify(execFile);
const helm = () => locateHelm("");
const kustomize = { build: () => Promise.reject(new Error("no kustomization was expected")) };
const release: HelmRelease = {
  releaseName: "web",
  namespace: "shop",
  crds: "CreateReplace",
  lookup: "Refuse",
  hooks: "Honor",
};

type Files = Readonly<Record<string, string | Uint8Array>>;

function render(files: Files, more: Partial<HelmRelease> = {}, bounds: Partial<HelmTemplateOptions> = {}) {
  const listed = Object.entries(files).map(([path, content]) => ({
    path,
    executable: false,
    content: typeof content === "string" ? new TextEncoder().encode(content) : content,
  }));
  const path = "Chart.yaml" in files ? "." : "deploy";
  return renderObjects(
    { files: listed, path, render: { helm: { ...release, ...more } } },
    { kustomize, helm: new HelmTemplate({ helm, ...bounds }) },
  );
}

test("a file of values that is missing in another Source is reported with that Source", async () => {
  const from = { source: "fleet", artifactDigest: "sha256:f" };
  const valuesFrom = [{ path: "templates/x.yaml", optional: false, from }];
  await expect(render(small("v"), { valuesFrom })).rejects.toThrow(
    "templates/x.yaml, render.helm.valuesFrom[0].path: is not a file of Source fleet; correct the path, which begins at the root of the repository",
  );
  expect(dataOf(await render(small("v"), { valuesFrom: [{ path: "none.yaml", optional: true, from }] }), "x")).toEqual({
    k: "v",
  });
});

function namesOf({ objects }: RenderedObjects): readonly string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

function dataOf({ objects }: RenderedObjects, name: string): unknown {
  return objects.find(({ metadata }) => metadata.name === name)?.data;
}

/** A chart with one ConfigMap, `x`. */
function small(data: string, more: Files = {}): Files {
  return {
    "Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    "templates/x.yaml": `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  k: ${data}\n`,
    ...more,
  };
}

/** The result of Helm for the files, without any code of Starling. */
async function helmItself(files: Files, args: readonly string[]): Promise<readonly unknown[]> {
  const folder = await mkdtemp(join(tmpdir(), "starling-test-chart-"));
  try {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    const env = { HOME: folder, PATH: "" };
    const { stdout } = await run(await helm(), ["template", "web", ".", "--namespace=shop", ...args], {
      cwd: folder,
      env,
    });
    const key = (object: unknown) => {
      const { kind, metadata } = object as { kind: string; metadata: { name: string } };
      return `${kind} ${metadata.name}`;
    };
    return loadAll(stdout)
      .filter((object) => object !== null && object !== undefined)
      .toSorted((a, b) => compareText(key(a), key(b)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function byName({ objects }: RenderedObjects): readonly unknown[] {
  return objects.toSorted((a, b) => compareText(`${a.kind} ${a.metadata.name}`, `${b.kind} ${b.metadata.name}`));
}

describe("the objects of a chart", () => {
  const rows: readonly (readonly [legend: string, more: Partial<HelmRelease>, args: readonly string[]])[] = [
    ["without options", {}, ["--include-crds"]],
    ["without its CRDs", { crds: "Skip" }, []],
    [
      "with values of the template",
      { values: '{"replicas":5,"image":{"tag":"7.0.0"},"cache":{"enabled":false}}' },
      ["--include-crds", "--set=replicas=5", "--set-string=image.tag=7.0.0", "--set=cache.enabled=false"],
    ],
    [
      "with values that remove one of the chart's",
      { values: '{"colour":null}' },
      ["--include-crds", "--set=colour=null"],
    ],
    [
      "for another version of Kubernetes, with other APIs",
      { kubeVersion: "1.31", apiVersions: ["monitoring.coreos.com/v1", "cert-manager.io/v1/Certificate"] },
      ["--include-crds", "--kube-version=1.31", "-a=monitoring.coreos.com/v1", "-a=cert-manager.io/v1/Certificate"],
    ],
  ];
  test.each(rows)("a chart %s has the objects of `helm template`", async (_legend, more, args) => {
    const rendered = await render(below("deploy", shopChart), more);
    expect(byName(rendered)).toEqual(await helmItself(shopChart, [...args, "--skip-tests"]));
    expect(rendered.objects.length).toBeGreaterThan(3);
  });

  test("CRDs of a chart and its dependencies are marked if Starling may only create them", async () => {
    const crd = (name: string) =>
      `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ${name}.example.com, annotations: {a: b}}\n`;
    const chart = small("v", {
      "crds/w.yaml": crd("w"),
      "charts/sub/Chart.yaml": "apiVersion: v2\nname: other\nversion: 0.1.0\n",
      "charts/sub/crds/nested/v.yaml": crd("v"),
      // Helm leaves the second of two marks in a row in its place, with a text that looks like its own.
      "templates/u.yaml": `---\n---\n# Source: small/crds/u.yaml\n${crd("u")}`,
    });
    const marks = async (crds: HelmRelease["crds"]) => {
      const { objects } = await render(below("deploy", chart), { crds });
      return Object.fromEntries(
        objects.map((object) => [object.metadata.name, annotationsOf(object)["starling.dev/apply"] ?? "-"]),
      );
    };
    const [u, v, w] = ["u.example.com", "v.example.com", "w.example.com"] as const;
    expect(await marks("Create")).toEqual({ x: "-", [u]: "-", [v]: "IfNotPresent", [w]: "IfNotPresent" });
    expect(await marks("CreateReplace")).toEqual({ x: "-", [u]: "-", [v]: "-", [w]: "-" });
    expect(await marks("Skip")).toEqual({ x: "-", [u]: "-" });
  });

  test("the chart's objects are those of `helm template` when its dependency is packed", async () => {
    const { files, packed } = await withPackedCache(shopChart);
    expect(byName(await render({ ...below("deploy", files), "deploy/charts/cache-0.4.0.tgz": packed }))).toEqual(
      await helmItself(shopChart, ["--include-crds", "--skip-tests"]),
    );
  });
});

async function withPackedCache(chart: Readonly<Record<string, string>>) {
  const isCache = ([path]: readonly [string, string]) => path.startsWith("charts/cache/");
  const cache = Object.entries(chart).filter(isCache);
  const packed = await packArtifact(
    cache.map(([path, text]) => ({
      path: path.slice("charts/".length),
      executable: false,
      content: new TextEncoder().encode(text),
    })),
  );
  return { files: Object.fromEntries(Object.entries(chart).filter((entry) => !isCache(entry))), packed };
}

describe("values", () => {
  const colour = async (more: Partial<HelmRelease>, files: Files = {}) =>
    dataOf(await render({ ...below("deploy", shopChart), ...files }, more), "shop-a");

  test("values override each other: the chart's, files in their order, the template's", async () => {
    const files = { "env/a.yaml": "colour: red\nnote: a\n", "env/b.yaml": "colour: green\n" };
    const [a, b] = [
      { path: "env/a.yaml", optional: false },
      { path: "./env/b.yaml", optional: false },
    ];
    expect(await colour({}, files)).toMatchObject({ colour: "blue" });
    expect(await colour({ valuesFrom: [a, b] }, files)).toMatchObject({ colour: "green", note: "a" });
    expect(await colour({ valuesFrom: [b, a] }, files)).toMatchObject({ colour: "red", note: "a" });
    expect(await colour({ valuesFrom: [a], values: '{"colour":"black"}' }, files)).toMatchObject({
      colour: "black",
      note: "a",
    });
  });

  test("values are data: braces stay text, and text that looks like YAML stays text", async () => {
    const text = '{{ .Release.Name }}" }\n---\nkind: Evil\n# {{ lookup "v1" "Secret" "" "" }}';
    expect(await colour({ values: JSON.stringify({ colour: text }) })).toMatchObject({ colour: text });
    expect(await colour({})).toMatchObject({ note: "up {{ $labels.pod }}" });
  });

  test("values keep every character, also those that YAML folds or refuses", async () => {
    const value = "a\u007f \u0085\u009f \u2028 \u2029 \ufeff\ufffe\uffff z";
    const chart = small("{{ .Values.v | b64enc }}");
    const rendered = await render(chart, { values: JSON.stringify({ v: value }) });
    const text = JSON.stringify(rendered.objects);
    expect(text).toContain(Buffer.from(value).toString("base64"));
  });

  test("values of an optional file are left out if it is missing", async () => {
    expect(await colour({ valuesFrom: [{ path: "env/none.yaml", optional: true }] })).toMatchObject({ colour: "blue" });
  });

  const refused: readonly (readonly [legend: string, file: string | undefined, error: object])[] = [
    [
      "a file that does not exist",
      undefined,
      {
        code: "ValuesNotFound",
        message: expect.stringMatching(/^env\/a.yaml, render.helm.valuesFrom\[0\].path: is not a file.*optional: true/),
      },
    ],
    [
      "a file with a list",
      "- a\n",
      { code: "InvalidValues", message: expect.stringContaining("values must be a map") },
    ],
    ["a file with two documents", "a: 1\n---\nb: 1\n", { code: "InvalidValues" }],
    [
      "a file with a key twice",
      "a: 1\na: 2\n",
      { code: "InvalidYaml", message: expect.stringMatching(/^env\/a.yaml:2/) },
    ],
  ];
  test.each(refused)("%s is refused as values", async (_legend, file, error) => {
    const files = file === undefined ? {} : { "env/a.yaml": file };
    const valuesFrom = [{ path: "env/a.yaml", optional: false }];
    await expect(colour({ valuesFrom }, files)).rejects.toMatchObject(error);
  });
});

describe("hooks", () => {
  test("hooks that are tests are left out, and their names are reported", async () => {
    const rendered = await render(shopChart);
    expect(namesOf(rendered)).not.toContain("Pod reachable");
    expect(rendered.leftOut).toEqual(["Pod reachable is left out: it is a hook for test, which Starling does not run"]);
  });

  test("tests whose names change with each rendering do not change the applied objects", async () => {
    const test =
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: t-{{ randAlpha 5 | lower }}\n  annotations: {helm.sh/hook: test}\n";
    expect(namesOf(await render(small("v", { "templates/test.yaml": test })))).toEqual(["ConfigMap x"]);
  });

  test("hooks are left out with `hooks: Omit`", async () => {
    const hook = "apiVersion: v1\nkind: Pod\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}\n";
    const rendered = await render(small("v", { "templates/hook.yaml": hook }), { hooks: "Omit" });
    expect(namesOf(rendered)).toEqual(["ConfigMap x"]);
    expect(rendered.leftOut).toEqual([expect.stringContaining("Pod migrate is left out")]);
  });

  test.each(["pre-install", "post-upgrade", "pre-install,test"])(
    "hooks for %s are kept, and `hooks: Refuse` refuses them with file and name",
    async (events) => {
      const hook = `apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: "${events}"}}\n`;
      const chart = small("v", { "templates/hook.yaml": hook });
      expect(namesOf(await render(chart))).toEqual(["ConfigMap x", "Job migrate"]);
      await expect(render(chart, { hooks: "Refuse" })).rejects.toMatchObject({
        code: "HookRefused",
        message: expect.stringMatching(
          /^templates\/hook\.yaml \(as rendered\):1, document 1, Job migrate, metadata\.annotations\["helm\.sh\/hook"\]: is .*values/,
        ),
      });
    },
  );
});

describe("a chart that asks whether it is an install", () => {
  const job = (name: string, events: string, more = "") =>
    `apiVersion: batch/v1\nkind: Job\nmetadata: {name: ${name}, annotations: {helm.sh/hook: "${events}"}}\n${more}`;
  const when = (word: string, text: string) => `{{ if .Release.${word} }}\n${text}{{ end }}\n`;

  test("the rendering has the hooks of the install and of the upgrade", async () => {
    const chart = small("v", {
      "templates/first.yaml": when("IsInstall", job("first", "pre-install")),
      "templates/again.yaml": when("IsUpgrade", job("again", "pre-upgrade")),
      "templates/each.yaml": job("each", "post-install,post-upgrade"),
    });
    expect([...namesOf(await render(chart))].sort()).toEqual(["ConfigMap x", "Job again", "Job each", "Job first"]);
  });

  test("the rendering has a single list of objects if only the hooks differ", async () => {
    const { objects, upgrade } = await render(
      small("v", { "templates/h.yaml": when("IsInstall", job("h", "pre-install")) }),
    );
    expect(upgrade).toBe(objects);
    expect((await render(small("{{ eq 1 2 }}{{/* IsInstall */}}"))).upgrade).toHaveLength(1);
  });

  const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
  const asked = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {up: '{{ .Release.IsUpgrade }}'}\n";
  const once = "helm.sh/hook: {{ if .Release.IsInstall }}post-install{{ else }}pre-upgrade{{ end }}";
  const turned = `apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: m\n  annotations:\n    ${once}\n`;
  const rows: readonly (readonly [legend: string, files: Files, install: object, upgrade: object])[] = [
    ["an object", { "templates/s.yaml": when("IsInstall", secret) }, ["ConfigMap x", "Secret s"], ["ConfigMap x"]],
    [
      "an object that comes later",
      { "templates/s.yaml": when("IsUpgrade", secret) },
      ["ConfigMap x"],
      ["ConfigMap x", "Secret s"],
    ],
    [
      "a hook for both",
      { "templates/h.yaml": when("IsInstall", job("h", "pre-install,pre-upgrade")) },
      ["ConfigMap x", "Job h"],
      ["ConfigMap x"],
    ],
    ["a field", { "templates/c.yaml": asked }, ["ConfigMap c", "ConfigMap x"], ["ConfigMap c", "ConfigMap x"]],
    ["the time of one hook", { "templates/m.yaml": turned }, ["ConfigMap x", "Job m"], ["ConfigMap x", "Job m"]],
  ];
  test.each(rows)(
    "install and upgrade have different objects if %s, as with helm",
    async (_legend, files, install, upgrade) => {
      const chart = small("v", files);
      const rendered = await render(chart);
      const after = { ...rendered, objects: rendered.upgrade };
      expect([namesOf(rendered), namesOf(after)]).toEqual([install, upgrade]);
      expect(rendered.upgrade).not.toEqual(rendered.objects);
      expect(byName(rendered)).toEqual(await helmItself(chart, []));
      expect(byName(after)).toEqual(await helmItself(chart, ["--is-upgrade"]));
    },
  );

  test("the objects of the install and of the upgrade are specialised and checked", async () => {
    const chart = small("v", {
      "templates/c.yaml": asked,
      "templates/d.yaml": when(
        "IsUpgrade",
        secret.replace("{name: s}", '{name: s, annotations: {config.kubernetes.io/depends-on: "/ConfigMap/none"}}'),
      ),
    });
    await expect(render(chart)).rejects.toMatchObject({
      code: "OrderRefused",
      message: expect.stringContaining("Secret s"),
    });
    const lot = small("v", {
      "templates/s.yaml": when("IsUpgrade", `${secret}stringData: {p: '{{ randAlphaNum 9 }}'}\n`),
    });
    await expect(render(lot)).rejects.toMatchObject({
      code: "NonDeterministicRender",
      message: expect.stringMatching(/, Secret s, data\.p: changes each time/),
    });
  });
});

describe("a field that changes with each rendering", () => {
  const rows: readonly (readonly [legend: string, data: string])[] = [
    ["a random text", "{{ randAlphaNum 20 }}"],
    ["a uuid", "{{ uuidv4 }}"],
    ["a certificate", '{{ (genCA "ca" 365).Cert | quote }}'],
    ["a password's hash", '{{ htpasswd "a" "b" | quote }}'],
    ["the time", "{{ now | unixEpoch | quote }}"],
    ["the year", '{{ now | date "2006" | quote }}'],
    ["the minute", '{{ now | date "04" | quote }}'],
    ["the weekday", '{{ now | date "Monday" | quote }}'],
    ["the day, without its name", '{{ htmlDate "" | quote }}'],
    ["the day of nothing, in a format", '{{ date "2006-01-02" .Values.none | quote }}'],
    ["the day in a zone, piped", '{{ "UTC" | dateInZone "02" "" | quote }}'],
    ["how long ago a day was", '{{ ago (toDate "2006-01-02" "2020-01-01") }}'],
    ["how long ago a day was, in one word", '{{ durationRound (toDate "2006-01-02" "2026-01-01") }}'],
    ["one of two numbers", "{{ randInt 0 2 }}"],
    ["one letter", "{{ randAlpha 1 }}"],
    ["two letters in any order", '{{ shuffle "ab" }}'],
    ["what follows from one of two", "{{ if eq (int (randInt 0 2)) 0 }}a{{ else }}b{{ end }}"],
    ["the time in a helper of a dependency", '{{ include "sub.time" . }}'],
  ];
  test.each(rows)("%s in a field is refused, with object and field", async (_legend, data) => {
    const chart = small(data, {
      "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
      "charts/sub/templates/_h.tpl": '{{ define "sub.time" }}{{ now | date "2006" | quote }}{{ end }}',
    });
    await expect(render(chart)).rejects.toMatchObject({
      code: "NonDeterministicRender",
      message: expect.stringMatching(/^templates\/x\.yaml \(as rendered\), ConfigMap x, data\.k: changes each time/),
    });
  });

  test("a field on which neither clock nor chance has an influence is accepted", async () => {
    const rows = [
      ['{{ toDate "2006-01-02" "2020-01-01" | date "Monday 2006" }}', "Wednesday 2020"],
      ['{{ date "2006-01-02" 1600000000 | quote }}', "2020-09-13"],
      ['{{ toDate "2006-01-02" "2020-01-01" | unixEpoch | quote }}', "1577836800"],
      ['{{ keys (dict "b" 1 "a" 2 "d" 3 "c" 4) | join "," }}', "a,b,c,d"],
      ['{{ durationRound "2h10m5s" }}', "2h"],
      [`{{ tpl "{{ include \\"shop.release-date\\" . }}{{/* as of now */}}" $ }}`, "of-spring"],
      ['{{ tpl (printf "{{ %q }}" "up to date -now") $ }}', "up to date -now"],
      ['{{ tpl "{{ `now and date` }} {{ .Values.a }}-now" $ }}', "now and date a-now"],
      [`{{ tpl "{{ print 'n' .Values.a 'w' }}-now" $ | quote }}`, "110a119-now"],
      ['{{ tpl "{{ tpl .Values.t . }}{{ .Values.b }} now" $ | upper | quote }}', "A! NOW"],
    ];
    const values = JSON.stringify({ t: "{{ .Values.a }}", a: "a", b: "!" });
    const helper = { "templates/_d.tpl": '{{ define "shop.release-date" }}of-spring{{ end }}' };
    for (const [data = "", expected] of rows)
      expect(dataOf(await render(small(data, helper), { values }), "x")).toEqual({ k: expected });
  });

  test.each([
    ["{{ now | unixEpoch }}", "now"],
    ["{{now}}", "now"],
    ["{{ $x := 1 }}{{ .y | default (randAlpha 5) }}", "randAlpha"],
    ["{{ tpl .Values.u . }}", "date"],
    [`{{ printf "%s" "a" | cat (now | unixEpoch) }}`, "now"],
    ["{{/* a */ -}}{{ $d := 4 }}{{ index (list 1 2) 0 | add (randInt 1 2) }}", "randInt"],
    ['{{ tpl (printf "{{ n%s }}" "ow") . }}', "now"],
    [`{{ print '"' (date "2006" 0) '"' }}`, "date"],
    ['{{ lookup "v1" "Secret" "" "" }}', "lookup"],
  ])("a changing value in a text for the function tpl is found: %s", async (t, name) => {
    const values = JSON.stringify({ t, u: '{{ date "2006" "" }}' });
    for (const chart of [
      small("{{ tpl .Values.t . | quote }}"),
      small('{{ include "h" . }}', { "templates/_h.tpl": '{{ define "h" }}{{ tpl $.Values.t . }}{{ end }}' }),
    ]) {
      await expect(render(chart, { values })).rejects.toMatchObject({
        code: "ChartRefused",
        message: expect.stringMatching(
          new RegExp(`^templates/x\\.yaml:5:\\d+: evaluates with tpl a text that calls ${name}: `),
        ),
      });
    }
  });

  test("an error in a text for the function tpl is reported with its place", async () => {
    await expect(
      render(small("{{ tpl .Values.t . | quote }}"), { values: '{"t":"{{ nope }}"}' }),
    ).rejects.toMatchObject({
      code: "ChartFailed",
      message: expect.stringMatching(
        /^templates\/x\.yaml:5:\d+: at <tpl>: error calling tpl: cannot parse template "\{\{ \*\*\* \}\}"/,
      ),
    });
  });

  test("the refusal never shows the value", async () => {
    const error = await render(small('{{ printf "%s-%s" "hunter2" (randAlpha 8) }}')).catch((thrown: Error) => thrown);
    expect(String(error)).not.toContain("hunter2");
  });

  test("a change that is only in a comment, or is not used, is accepted", async () => {
    const chart = small("{{/* {{ now }} */}}v # {{ uuidv4 }}\n  now: {{ .Values.now | default `now` }}");
    expect(dataOf(await render(chart), "x")).toEqual({ k: "v", now: "now" });
    const guarded = small("{{ if .Values.password }}{{ .Values.password }}{{ else }}{{ randAlpha 9 }}{{ end }}");
    expect(dataOf(await render(guarded, { values: '{"password":"p"}' }), "x")).toEqual({ k: "p" });
  });
});

describe("lookup", () => {
  const withLookup = small('{{ $s := lookup "v1" "Secret" "shop" "pw" }}{{ $s | len | quote }}');
  const inHelper = small('{{ include "pw" . | quote }}', {
    "templates/_helpers.tpl": '\n{{ define "pw" }}\n{{- ("pw" | lookup "v1" "Secret" "shop") | len }}{{ end }}',
  });

  test("a call of lookup is refused by template and line", async () => {
    await expect(render(withLookup)).rejects.toMatchObject({
      code: "ChartRefused",
      message: expect.stringMatching(/^templates\/x\.yaml:5:\d+: calls lookup.*existing Secret/),
    });
    await expect(render(inHelper)).rejects.toMatchObject({
      code: "ChartRefused",
      message: expect.stringMatching(/^templates\/_helpers\.tpl:3:\d+: calls lookup/),
    });
  });

  test("a call of lookup that no template reaches is accepted, and so is a field of that name", async () => {
    const chart = small('{{ if .Values.lookup }}{{ lookup "v1" "Secret" "" "" }}{{ end }}{{ "lookup" }}');
    expect(dataOf(await render(chart), "x")).toEqual({ k: "lookup" });
  });

  test("lookup finds nothing if the Sync permits that", async () => {
    expect(dataOf(await render(withLookup, { lookup: "Empty" }), "x")).toEqual({ k: "0" });
  });
});

describe("an error of a chart", () => {
  const rows: readonly (readonly [legend: string, files: Files, error: object])[] = [
    [
      "a value that does not exist",
      small("{{ .Values.a.b }}"),
      {
        code: "ChartFailed",
        message: expect.stringMatching(/^templates\/x\.yaml:5:\d+: at <\.Values\.a\.b>: nil pointer/),
      },
    ],
    [
      "a missing value that the chart requires",
      small('{{ required "say which host" .Values.host }}'),
      {
        code: "ChartFailed",
        message: expect.stringMatching(/^templates\/x\.yaml:5:\d+: the chart says: say which host$/),
      },
    ],
    [
      "an unknown function",
      small("{{ nope }}"),
      { code: "ChartFailed", message: 'templates/x.yaml:5: is not a valid template: function "nope" not defined' },
    ],
    [
      "an error in a helper",
      small('{{ include "h" . }}', { "templates/_h.tpl": '\n\n{{ define "h" }}{{ .Values.a.b }}{{ end }}' }),
      { code: "ChartFailed", message: expect.stringMatching(/^templates\/_h\.tpl:3:\d+: at <\.Values\.a\.b>/) },
    ],
    [
      "a template that renders to invalid YAML",
      small("v\n k: [", {}),
      {
        code: "ChartFailed",
        message: expect.stringMatching(/^templates\/x\.yaml \(as rendered\): renders to invalid YAML: yaml: line/),
      },
    ],
    [
      "an object without a kind",
      small("v", { "templates/y.yaml": "apiVersion: v1\nmetadata: {name: y}\n" }),
      {
        code: "InvalidObject",
        message: expect.stringMatching(/^templates\/y\.yaml \(as rendered\):1, document 1, kind: is missing/),
      },
    ],
    [
      "a version of Kubernetes that the chart does not support",
      small("v", { "Chart.yaml": 'apiVersion: v2\nname: small\nversion: 0.1.0\nkubeVersion: "<1.20"\n' }),
      {
        code: "ChartFailed",
        message: expect.stringMatching(/^Chart\.yaml: chart requires kubeVersion.*render\.helm\.kubeVersion/),
      },
    ],
    [
      "values that violate the chart's schema",
      small("v", { "values.schema.json": '{"required":["host"]}' }),
      {
        code: "ChartFailed",
        message: expect.stringMatching(/^Chart\.yaml: values don't meet[\s\S]*host[\s\S]*render\.helm\.values/),
      },
    ],
    ["a chart without templates", { "Chart.yaml": small("")["Chart.yaml"] ?? "" }, { code: "EmptyRender" }],
    [
      "a library chart",
      { "Chart.yaml": "apiVersion: v2\nname: l\nversion: 0.1.0\ntype: library\n" },
      { code: "ChartRefused", message: expect.stringMatching(/^Chart\.yaml, type: is library/) },
    ],
    [
      "a folder without a chart",
      { "deploy/templates/x.yaml": "a: b" },
      {
        code: "ChartRefused",
        message: expect.stringMatching(/^deploy: is not a Helm chart, because it has no Chart\.yaml/),
      },
    ],
  ];
  test.each(rows)("%s is reported with its file", async (_legend, files, error) => {
    await expect(render(files)).rejects.toMatchObject(error);
  });

  const secrets: readonly (readonly [legend: string, schema: object, said: string])[] = [
    ["a pattern", { pattern: "^[a-z]+$" }, "- at '/pin': does not match pattern '^[a-z]+$'"],
    ["a list of allowed values", { enum: ["a", "b"] }, "- at '/pin': value must be one of 'a', 'b'"],
    [
      "a pattern among others",
      { anyOf: [{ type: "integer" }, { pattern: "q" }] },
      "  - at '/pin': does not match pattern 'q'",
    ],
    ["a length", { maxLength: 3 }, "- at '/pin': maxLength: got 42, want 3"],
    ["names of properties", { propertyNames: { const: "a" } }, "- at '/pin': got string, want object"],
  ];
  test.each(secrets)(
    "a value that violates a schema is reported by its path and not shown: %s",
    async (_legend, schema, said) => {
      const type = "propertyNames" in schema ? { type: "object" } : {};
      const chart = small("v", {
        "values.schema.json": JSON.stringify({ properties: { pin: { ...schema, ...type } } }),
      });
      const values = JSON.stringify({ pin: "hunter2' does not match pattern 'x' failed" });
      const error = await render(chart, { values }).catch((thrown: Error) => thrown);
      expect(String(error)).toContain(`${said}\n`.trimEnd());
      expect(String(error)).not.toContain("hunter2");
    },
  );

  test("a number that violates a schema is reported and not shown", async () => {
    const chart = small("v", { "values.schema.json": '{"properties":{"pin":{"minimum":9999}}}' });
    await expect(render(chart, { values: '{"pin":1234}' })).rejects.toThrow(/^(?!.*1234).*minimum: want 9,?999/s);
  });

  test("a dependency that is not vendored is reported with the remedy", async () => {
    const files = below(
      "deploy",
      Object.fromEntries(Object.entries(shopChart).filter(([path]) => !path.startsWith("charts/"))),
    );
    await expect(render(files)).rejects.toMatchObject({
      code: "ChartRefused",
      message:
        "deploy/Chart.yaml, dependencies[0]: cache 0.x from https://charts.example.com is not in deploy/charts, and Starling fetches nothing while it renders; run `helm dependency build deploy` and commit the files that it creates there",
    });
  });
});

test("a schema of values may refer to schemas that are known without a download", async () => {
  for (const dialect of ["http://json-schema.org/schema#", "https://json-schema.org/draft/2020-12/schema"]) {
    const schema = { $schema: dialect, properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { type: "string" } } };
    const chart = small("{{ .Values.a }}", { "values.schema.json": JSON.stringify(schema) });
    expect(dataOf(await render(chart, { values: '{"a":"b"}' }), "x")).toEqual({ k: "b" });
    await expect(render(chart, { values: '{"a":1}' })).rejects.toThrow("got number, want string");
  }
});

describe("a hostile chart", () => {
  test("a chart reaches no server through a schema of values", async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests++;
      response.end("{}");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    try {
      const schemas = [
        { $ref: `${origin}/s.json` },
        { $schema: `${origin}/s.json` },
        { properties: { a: { allOf: [{ $ref: `${origin}/s.json#/x` }] } } },
        { $id: `${origin}/a/`, $ref: "s.json" },
        { $ref: "file:///etc/hostname" },
      ];
      for (const schema of schemas) {
        const chart = small("v", { "values.schema.json": JSON.stringify(schema) });
        await expect(render(chart)).rejects.toMatchObject({
          code: "ChartRefused",
          message: expect.stringMatching(/^values\.schema\.json, .*Starling fetches nothing/),
        });
      }
      // Helm itself would have sent the request.
      const [first] = schemas;
      await helmItself(small("v", { "values.schema.json": JSON.stringify(first) }), []);
      expect(requests).toBe(1);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test("a chart reads no files but its own", async () => {
    const chart = small('{{ .Files.Get "../../etc/hostname" | quote }}', {});
    expect(dataOf(await render(chart), "x")).toEqual({ k: "" });
    const above = { ...below("deploy", small('{{ .Files.Get "../secret.txt" | quote }}')), "secret.txt": "s" };
    expect(dataOf(await render(above), "x")).toEqual({ k: "" });
    expect(dataOf(await render(small('{{ getHostByName "localhost" | quote }}')), "x")).toEqual({ k: "" });
  });

  test("a chart sees no variable of the environment", async () => {
    await expect(render(small('{{ env "PATH" }}'))).rejects.toThrow('function "env" not defined');
  });

  test("a chart that renders too much output is refused", async () => {
    const chart = small("{{ range $i := until 100000 }}xxxxxxxxxx{{ end }}");
    await expect(render(chart, {}, { maxOutputBytes: 100_000 })).rejects.toMatchObject({
      code: "HelmFailed",
      retry: "permanent",
      message:
        ".: helm wrote more than 100000 bytes; make the chart render less: check for a range or a text that grows with the values",
    });
  });

  test("a chart that uses too much memory is stopped", async () => {
    const doubled =
      '{{ $s := "xxxxxxxx" }}{{ range $i := until 40 }}{{ $s = printf "%s%s" $s $s }}{{ end }}{{ $s | len }}';
    await expect(render(small(doubled), {}, { maxMemoryBytes: 192 * 1024 * 1024 })).rejects.toMatchObject({
      code: "HelmFailed",
      retry: "permanent",
      message:
        ".: helm ran out of memory; make the chart render less: check for a range or a text that grows with the values",
    });
  });

  test("a chart that takes too long is stopped", async () => {
    const busy = "{{ range $i := until 5000 }}{{ range $j := until 5000 }}{{ $k := add $i $j }}{{ end }}{{ end }}v";
    await expect(render(small(busy), {}, { timeoutSeconds: 0.3 })).rejects.toMatchObject({
      code: "HelmFailed",
      retry: "transient",
      message:
        ".: helm took longer than 0.3 s; make the chart render less: check for a range or a text that grows with the values",
    });
  });

  test("a template cannot call itself for ever", async () => {
    const chart = small('{{ include "me" . }}', {
      "templates/_me.tpl": '{{ define "me" }}{{ include "me" . }}{{ end }}',
    });
    await expect(render(chart)).rejects.toMatchObject({ code: "ChartFailed" });
    const two = '{{ define "me" }}{{ include "you" . }}{{ end }}{{ define "you" }}{{ include "me" . }}{{ end }}';
    await expect(render(small('{{ include "me" . }}', { "templates/_me.tpl": two }))).rejects.toMatchObject({
      code: "ChartFailed",
      message: expect.stringMatching(/nested reference|maximum|recursion/),
    });
  });

  test("a chart's dependencies bring no links", async () => {
    const { pack } = await import("tar-stream");
    const { gzipSync } = await import("node:zlib");
    const archive = pack();
    archive.entry({ name: "cache/Chart.yaml" }, "apiVersion: v2\nname: cache\nversion: 0.1.0\n");
    archive.entry({ name: "cache/files/passwd", type: "symlink", linkname: "/etc/passwd" });
    archive.finalize();
    const chunks: Uint8Array[] = [];
    for await (const chunk of archive) chunks.push(chunk as Uint8Array);
    await expect(
      render(small("v", { "charts/cache-0.1.0.tgz": gzipSync(Buffer.concat(chunks)) })),
    ).rejects.toMatchObject({
      code: "ChartRefused",
      message: expect.stringMatching(
        /^charts\/cache-0\.1\.0\.tgz: cannot be unpacked: "cache\/files\/passwd" is a symlink/,
      ),
    });
  });

  test("a packed chart without a folder of its own, which Helm would skip, is refused", async () => {
    const packed = await packArtifact([
      { path: "Chart.yaml", executable: false, content: new TextEncoder().encode("name: c") },
    ]);
    await expect(render(small("v", { "charts/c.tgz": packed }))).rejects.toMatchObject({
      code: "ChartRefused",
      message: "charts/c.tgz: contains Chart.yaml outside of the chart's folder; pack the chart with `helm package`",
    });
  });

  test("a packed chart is refused if its folder exists already", async () => {
    const { files, packed } = await withPackedCache(shopChart);
    const stands = "charts/a.tgz: is in the same folder as charts/a, to which it would be unpacked; keep one of them";
    for (const other of ["charts/a", "charts/a/README.md"]) {
      await expect(render({ ...files, "charts/a.tgz": packed, [other]: "x" })).rejects.toMatchObject({
        code: "ChartRefused",
        message: stands,
      });
    }
  });

  test.each([
    [
      "a name that no file can have",
      { [`templates/${"a".repeat(300)}.yaml`]: "" },
      /^"templates\/a+\.\.\." has a part of more than 255 bytes/,
    ],
    ["a file that is also a folder", { files: "", "files/a": "" }, /^"files\/a" is in "files", which is a file, too/],
  ])("a chart is refused for %s", async (_legend, more, message) => {
    await expect(render(small("v", more))).rejects.toMatchObject({
      code: "PathRefused",
      message: expect.stringMatching(message),
    });
  });

  test("a call of lookup in a packed dependency is found", async () => {
    const { files, packed } = await withPackedCache({
      ...shopChart,
      "charts/cache/templates/cache.yaml": '{{ lookup "v1" "Secret" "" "" }}',
    });
    await expect(render({ ...files, "charts/cache-0.4.0.tgz": packed })).rejects.toThrow(/calls lookup/);
  });
});
