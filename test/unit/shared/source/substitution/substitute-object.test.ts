// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, type Json, type JsonObject } from "#shared/base/json.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { substituteObject } from "#shared/source/substitution/substitute-object.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

function substituted(yaml: string, variables: Readonly<Record<string, string>>) {
  const room = { left: 10_000 };
  const change = (object: JsonObject, refuse: (field: string, reason: string) => never) =>
    substituteObject(object, { variables, room }, refuse);
  return readManifests(parseManifests(yaml, "a.yaml"), change).map(({ object }) => object);
}

const configMap = (data: string, metadata = "") => `apiVersion: v1
kind: ConfigMap
metadata: {name: "\${NAME}"${metadata}}
data: ${data}
`;

describe("variables in objects", () => {
  test("the expanded texts of a rendering are limited in total", () => {
    const yaml = Array.from({ length: 6 }, (_, index) =>
      configMap(`{a: "\${A}"}`).replace("${NAME}", `n${index}`),
    ).join("---\n");
    expect(() => substituted(yaml, { A: "x".repeat(2000) })).toThrow(
      /^a\.yaml:26, document 6, ConfigMap n5, data\.a: makes the rendering's expanded texts too long together; shorten the values, or substitute less/,
    );
  });

  test("variables are replaced in texts at every depth, in names and annotations, too, and a text stays a text", () => {
    const yaml = `apiVersion: v1
kind: List
items:
  - apiVersion: example.com/v1
    kind: Widget
    metadata: {name: "\${NAME}", annotations: {owner: "team-\${NAME}"}}
    spec: {count: 3, on: true, none: null, size: "\${N}", flags: ["--domain=\${NAME}.example.com", "\${B}", 1.5]}
`;
    expect(substituted(yaml, { NAME: "web", N: "3", B: "yes" })).toEqual([
      {
        apiVersion: "example.com/v1",
        kind: "Widget",
        metadata: { name: "web", annotations: { owner: "team-web" } },
        spec: { count: 3, true: true, none: null, size: "3", flags: ["--domain=web.example.com", "yes", 1.5] },
      },
    ]);
  });

  test("variables are replaced in a Secret's stringData before it is encoded, and never in encoded data", () => {
    const yaml = `apiVersion: v1
kind: Secret
metadata: {name: s}
data: {encoded: "JHtOQU1FfQ=="}
stringData: {plain: "\${NAME}"}
`;
    expect(substituted(yaml, { NAME: "web" })[0]?.data).toEqual({ encoded: "JHtOQU1FfQ==", plain: "d2Vi" });
  });

  test.each(["annotations", "labels"])(
    "variables stay unchanged in an object with Flux's mark among its %s",
    (where) => {
      const marked = (value: string) => `, ${where}: {kustomize.toolkit.fluxcd.io/substitute: ${value}}`;
      const script = '{script: "${HOME:?} $$"}';
      const left = configMap(script, marked("disabled")).replace("${NAME}", "a");
      expect(substituted(left, {})[0]?.data).toEqual({ script: "${HOME:?} $$" });
      // Only this spelling counts, as in Flux.
      expect(() => substituted(configMap("{}", marked("Disabled")), {})).toThrow("${NAME} is not set");
      expect(substituted(configMap("{}", marked("Disabled")), { NAME: "b" })[0]?.metadata.name).toBe("b");
    },
  );

  test.each([
    ['{deep: {a.b/c: [x, "${MISSING}"]}}', 'data.deep["a.b/c"][1]: ${MISSING} is not set; set parameters.MISSING'],
    ['{"${NAME}": x}', 'data["${NAME}"]: is a key that contains ${, and keys are not substituted'],
    ['{script: "echo ${HOME-}"}', "data.script: the expression at character 6 has no } after the name"],
  ])("the refusal of %s names the object, the field and the remedy", (data, message) => {
    expect(() => substituted(configMap(data), { NAME: "web", HOME: "" })).toThrow(
      `a.yaml:1, document 1, ConfigMap \${NAME}, ${message}`,
    );
    expect(() => substituted(configMap(data), { NAME: "web", HOME: "" })).toThrow(
      "annotate the object with kustomize.toolkit.fluxcd.io/substitute: disabled to leave it as it is",
    );
  });

  test("the result of a substitution is checked like every manifest", () => {
    expect(() => substituted(configMap("{}"), { NAME: "../secrets/x" })).toThrow("metadata.name: got");
    expect(() => substituted(`${configMap("{}")}---\n${configMap("{}")}`, { NAME: "a" })).toThrow("is also in a.yaml");
  });

  const hostile = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      "\nkind: Secret",
      "{a: b}",
      "- x",
      '"',
      "${NAME}",
      "{{ cluster.name }}",
      "1",
      "true",
      "null",
      "!!binary x",
      "&a *a",
    ),
  );
  const text = fc
    .array(fc.constantFrom("${A}", "${B}", "${C:=${A}}", "x", "$", ": ", "\n"))
    .map((parts) => parts.join(""));

  /** The expected result for every value, computed without the tested code. */
  function expected(value: string, { A, B }: { readonly A: string; readonly B: string }): string {
    return value
      .split(/(\$\{A\}|\$\{B\}|\$\{C:=\$\{A\}\}|\$\$)/)
      .map((part) => {
        if (part === "$$") return "$";
        if (part === "${B}") return B;
        return part === "${A}" || part === "${C:=${A}}" ? A : part;
      })
      .join("");
  }

  test.each(propertySeeds)("no value becomes structure, another key or another expression (seed %i)", (seed) => {
    const tree = fc.letrec<{ node: Json }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.boolean(),
        fc.array(tie("node"), { maxLength: 4 }),
        fc.dictionary(
          fc.string().filter((key) => !key.includes("${")),
          tie("node"),
          { maxKeys: 4 },
        ),
      ),
    })).node;
    const shape = (node: Json, leaf: (value: string) => string): Json => {
      if (typeof node === "string") return leaf(node);
      if (Array.isArray(node)) return node.map((item: Json) => shape(item, leaf));
      if (typeof node !== "object" || node === null) return node;
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, shape(value ?? null, leaf)]));
    };
    const refuse = (field: string, reason: string): never => {
      throw new Error(`${field}: ${reason}`);
    };
    fc.assert(
      fc.property(tree, hostile, hostile, (spec, A, B) => {
        const object = { apiVersion: "v1", kind: "K", metadata: { name: "n" }, spec };
        const found = substituteObject(object, { variables: { A, B }, room: { left: 1_000_000 } }, refuse);
        const desired = { ...object, spec: shape(spec, (value) => expected(value, { A, B })) };
        expect(canonicalJson(found)).toBe(canonicalJson(desired));
      }),
      { seed, numRuns: propertyRuns(300) },
    );
  });
});
