import { describe, expect, test } from "vitest";
import { checkPathTemplate, renderPath, renderText } from "#shared/base/path-template.ts";

const cluster = {
  name: "eu-1",
  labels: { ring: "canary", "topology.kubernetes.io/region": "eu-central-1", empty: "", sneaky: "../../etc" },
  params: {
    DIR: "d-{{ cluster.values.tenant }}",
    TWO: "b/{{ cluster.values.tenant }}",
    BELOW: "x/{{ cluster.values.below }}",
    EMPTY: "",
    lost: "{{ cluster.values.none }}",
  },
  values: {
    tenant: "shop",
    port: 8443,
    on: true,
    zero: 0,
    deep: { zone: { name: "a" } },
    list: ["x"],
    text: "a.b",
    below: "eu/prod",
    dot: ".",
    slash: "/",
    empty: "",
  },
};

const labelPlace =
  "set the label on the Cluster (metadata.labels), or take it from a tag (spec.labels.fromTags of its ClusterDiscovery)";
const valuePlace =
  "set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery)";

describe("a path template", () => {
  test.each([
    [".", "."],
    ["deploy/base", "deploy/base"],
    ["clusters/{{ cluster.name }}", "clusters/eu-1"],
    ["{{cluster.name}}", "eu-1"],
    ["{{   cluster.name   }}/x", "eu-1/x"],
    ["rings/{{ cluster.labels.ring }}/{{ cluster.values.tenant }}", "rings/canary/shop"],
    ["{{ cluster.labels.topology.kubernetes.io/region }}", "eu-central-1"],
    ["a/{{ cluster.labels.none | default(base) }}", "a/base"],
    ["a/{{ cluster.labels.ring | default(base) }}", "a/canary"],
    ["a{{ cluster.labels.none | default() }}", "a"],
    ["a{{ cluster.labels.empty | default(b) }}", "a"],
    ["a..b/{{ cluster.name }}...", "a..b/eu-1..."],
    ["braces/{ }/}{", "braces/{ }/}{"],
    ["{{ cluster.values.port }}/{{ cluster.values.on }}/{{ cluster.values.zero }}", "8443/true/0"],
    ["zones/{{ cluster.values.deep.zone.name }}", "zones/a"],
    ["zones/{{ cluster.values.deep.none.name | default(b) }}", "zones/b"],
    ["{{ cluster.values.text.length | default(none) }}", "none"],
    ["{{ params.DIR }}/{{ params.none | default(x) }}", "d-shop/x"],
    ["a/{{ cluster.labels.none | default(b/c) }}/", "a/b/c/"],
    ["a/{{ params.TWO }}", "a/b/shop"],
    ["./a//{{ cluster.name }}", "./a//eu-1"],
    ["a/{{ cluster.values.below | path }}", "a/eu/prod"],
    ["a/{{ params.BELOW | path }}", "a/x/eu/prod"],
    ["a/{{ cluster.values.none | default(b) | path }}", "a/b"],
    ["a{{ cluster.values.dot }}", "a."],
  ])("the template %s yields %s", (text, path) => {
    expect(checkPathTemplate(text)).toBeUndefined();
    expect(renderPath(text, cluster)).toEqual({ ok: true, path });
  });

  const never = (path: string, expression: string) =>
    `"${path}" for cluster eu-1 is not the intended folder: {{ ${expression} }} fills the name of a folder, which must not be empty, "." or ".."; correct its value`;
  const deep = (expression: string, value: string) =>
    `${expression} of cluster eu-1 is "${value}", which is more than the name of one folder; correct it, or write {{ ${expression} | path }} to allow several folders`;
  test.each([
    ["clusters/{{ cluster.values.dot }}", never("clusters/.", "cluster.values.dot")],
    ["clusters/{{ cluster.values.empty }}", never("clusters/", "cluster.values.empty")],
    ["clusters/{{ cluster.labels.empty }}", never("clusters/", "cluster.labels.empty")],
    ["clusters/{{ cluster.labels.none | default() }}", never("clusters/", "cluster.labels.none | default()")],
    ["{{ cluster.labels.empty }}/a", '"/a" for cluster eu-1 leads out of the artifact; correct its values'],
    ["a/{{ cluster.values.empty }}/b", never("a//b", "cluster.values.empty")],
    ["a/{{ params.EMPTY }}", never("a/", "params.EMPTY")],
    ["a/{{ cluster.values.empty }}{{ cluster.values.dot }}/b", never("a/./b", "cluster.values.empty")],
    ["a/{{ cluster.values.slash | path }}", never("a//", "cluster.values.slash | path")],
    ["clusters/{{ cluster.values.slash }}", deep("cluster.values.slash", "/")],
    ["clusters/{{ cluster.values.below }}", deep("cluster.values.below", "eu/prod")],
    ["clusters/{{ params.BELOW }}", deep("params.BELOW", "x/eu/prod")],
    [
      "clusters/{{ cluster.values.dot }}{{ cluster.values.dot }}",
      '"clusters/.." for cluster eu-1 leads out of the artifact; correct its values',
    ],
    ["{{ cluster.labels.none }}", `cluster eu-1 has no cluster.labels.none; ${labelPlace}; or add | default(text)`],
    [
      "{{ cluster.values.a }}/{{ cluster.labels.b }}",
      `cluster eu-1 has no cluster.values.a, cluster.labels.b; ${labelPlace}; ${valuePlace}; or add | default(text)`,
    ],
    [
      "{{ params.none }}",
      "cluster eu-1 has no params.none; set the parameter in the template's parameters, or in those of an override for the cluster; or add | default(text)",
    ],
    [
      "{{ params.lost }}",
      `parameters.lost: cluster eu-1 has no cluster.values.none; ${valuePlace}; or add | default(text)`,
    ],
    [
      "{{ cluster.values.deep.zone }}/{{ cluster.values.list }}",
      "cluster.values.deep.zone, cluster.values.list of cluster eu-1 is a list or a map; name a string, a number or a boolean inside it",
    ],
    ["{{ cluster.labels.sneaky }}", '"../../etc" for cluster eu-1 leads out of the artifact; correct its values'],
    [
      "a/{{ cluster.labels.none | default(..) }}/b",
      '"a/../b" for cluster eu-1 leads out of the artifact; correct its values',
    ],
    [
      "{{ cluster.labels.none | default(/etc) }}",
      '"/etc" for cluster eu-1 leads out of the artifact; correct its values',
    ],
    ["{{ cluster.labels.empty }}", '"" for cluster eu-1 leads out of the artifact; correct its values'],
  ])("the template %s is refused for the cluster: %s", (text, message) => {
    expect(checkPathTemplate(text)).toBeUndefined();
    expect(renderPath(text, cluster)).toEqual({ ok: false, message: `path: ${message}` });
  });

  test("a template's result may be as long as a literal path, and no longer", () => {
    const long = { ...cluster, values: { v: "x".repeat(1000) } };
    expect(renderPath(`${"y".repeat(23)}/{{cluster.values.v}}`, long)).toMatchObject({ ok: true });
    const message = (length: number) =>
      `path: has ${length} characters for cluster eu-1; expected at most 1024: shorten the path or its values`;
    const cases: readonly (readonly [string, number])[] = [
      [`${"y".repeat(24)}/{{cluster.values.v}}`, 1025],
      [`{{cluster.values.v}}/${"y".repeat(1000)}`, 2001],
      ["{{cluster.values.v}}/".repeat(48), 48_048],
    ];
    for (const [text, length] of cases) {
      expect(checkPathTemplate(text)).toBeUndefined();
      expect(renderPath(text, long)).toEqual({ ok: false, message: message(length) });
    }
  });

  test.each([
    "{{ name }}",
    "{{ cluster.status.uid }}",
    "{{ cluster.labels }}",
    "{{ cluster.name | upper }}",
    "{{ cluster.name | default(a) | default(b) }}",
    "{{ cluster.name | path | default(b) }}",
    "{{ cluster.name | default({{ cluster.name }}) }}",
    "{{ process.env.HOME }}",
    "{{ constructor.constructor('x')() }}",
    "{{ cluster.values.a-b }}",
    "{{}}",
  ])("the text %s is refused as an expression, with a remedy", (text) => {
    const problem = checkPathTemplate(`a/${text}`);
    expect(problem).toMatch(/is not an expression that Starling knows|has \{\{ without \}\}/);
    expect(renderPath(`a/${text}`, cluster)).toEqual({ ok: false, message: `path: ${problem}` });
  });

  test.each(["a/{{ cluster.name", "a/cluster.name }}", "{{ cluster.name }} }}"])(
    "the template %s is refused for half an expression",
    (text) => {
      expect(checkPathTemplate(text)).toBe("has {{ without }} or }} without {{");
    },
  );

  test("members that every JavaScript object has are not labels of a cluster", () => {
    for (const name of ["constructor", "toString", "hasOwnProperty"]) {
      expect(renderPath(`{{ cluster.labels.${name} }}`, cluster)).toMatchObject({ ok: false });
      expect(renderPath(`{{ cluster.values.${name} | default(x) }}`, cluster)).toEqual({ ok: true, path: "x" });
    }
  });

  test("a filter `| path` outside of a path is refused, because it would have no effect", () => {
    expect(checkPathTemplate("{{ cluster.name | path }}", "text")).toMatch(
      /has no effect here, because only a path may use it/,
    );
    expect(renderText("{{ cluster.name | path }}", cluster)).toMatchObject({ ok: false });
  });
});
