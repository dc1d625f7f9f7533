/** What kustomize says of its input, and what of that is told: never a text of a Secret. */
import { expect, test } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";

const kustomize = new KubectlKustomize({ kubectl: () => locateKubectl("") });

const secret = (value: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: ${value}\n`;
const below = (text: string) => text.replaceAll(/^/gm, "    ");
const withSecret = (kustomization: string) => ({
  "kustomization.yaml": `resources: [s.yaml]\n${kustomization}`,
  "s.yaml": secret("x"),
});
const jsonPatch = (patch: string) =>
  withSecret(
    `patchesJson6902:\n  - target: {version: v1, kind: Secret, name: s}\n    patch: |\n${below(below(patch))}\n`,
  );
const generated = (lines: string | Uint8Array) => ({
  "kustomization.yaml": "secretGenerator: [{name: s, envs: [s.env]}]\n",
  "s.env": lines,
});

test.each<[string, Record<string, string | Uint8Array>, RegExp]>([
  [
    "a text that begins as an alias",
    { "kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": secret("*hunter2") },
    /yaml: unknown anchor referenced; put what begins with \* in quotes in File: s\.yaml$/,
  ],
  [
    "a text with a tag that does not fit",
    { "kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": secret("!!int hunter2` as a !!x") },
    /cannot decode !!str as a !!int$/,
  ],
  [
    "a text in brackets before a colon",
    { "kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": secret("{? [hunter2] : x}") },
    /yaml: invalid map key; put what begins with a brace or a bracket in quotes$/,
  ],
  [
    "a patch in place that is no YAML",
    withSecret(`patchesStrategicMerge:\n  - |\n${below(secret("*hunter2"))}`),
    /a patch that is written in place is no YAML of one object$/,
  ],
  [
    "a patch in place of two objects",
    withSecret(`patchesStrategicMerge:\n  - |\n${below(secret("hunter2\n---\nhunter2"))}`),
    /a patch that is written in place is no YAML of one object$/,
  ],
  [
    "a JSON patch with a comma too many",
    jsonPatch('[{"op": "add", "path": "/stringData/a", "value": "hunter2",}]'),
    /decoding a JSON patch: invalid character '\}' looking for beginning of object key string$/,
  ],
  [
    "a JSON patch that is too long to be told as a whole",
    jsonPatch(`[{"op": "add", "path": "/stringData/a", "value": "${"hunter2 ".repeat(5000)}",}]`),
    /decoding a JSON patch: invalid character '\}' looking for beginning of object key string$/,
  ],
  [
    "a JSON patch with an operation that is none",
    jsonPatch('[{"op": "hunter2", "path": "/stringData/a"}]'),
    /a JSON patch has an op that is none$/,
  ],
  [
    "a $patch that is none",
    {
      ...withSecret("patches: [{path: p.yaml}]\n"),
      "p.yaml": secret("a\n  $patch: hunter2"),
    },
    /unknown \$patch$/,
  ],
  [
    "a line of a generator's file that is Latin-1",
    generated(Buffer.from("USER=a\nPASSWORD=hunter2\xfc\n", "latin1")),
    /env source files: \[s\.env\]: a line is not UTF-8; save the file as UTF-8$/,
  ],
  ["a line that is taken for a key, twice", generated("KEY=a\nhunter2==\nhunter2==\n"), /illegally repeats a key$/],
  [
    "annotations of an object without a name",
    {
      "kustomization.yaml": "resources: [s.yaml]\n",
      "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {annotations: {last: '{a: [hunter2]}}'}}\n",
    },
    /missing metadata\.name in object \{\{v1 Secret\} \{\{ \}\}\}/,
  ],
  [
    "a name that is looked for in a list of lists",
    {
      "kustomization.yaml": "resources: [s.yaml, c.yaml]\nnamePrefix: p-\nconfigurations: [names.yaml]\n",
      "names.yaml": "nameReference: [{kind: ConfigMap, fieldSpecs: [{kind: Secret, path: stringData/password}]}]\n",
      "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
      "s.yaml": secret("[[hunter2]]"),
    },
    /s\.\[noNs\]: a value is expected to be either a string or a map of string$/,
  ],
])("kustomize's words on %s hold nothing of it", async (_what, files, said) => {
  const tree = Object.entries(files).map(([path, content]) => ({
    path,
    executable: false,
    content: typeof content === "string" ? new TextEncoder().encode(content) : content,
  }));
  const built = kustomize.build({ files: tree, path: "." });
  await expect(built).rejects.toThrow(said);
  await expect(built).rejects.toThrow(/^(?!.*(?:hunter2|104 117|0xc0))/s);
});
