/** Errors of kustomize quote its input. Starling shows only parts that cannot be a text of a Secret. */
import { expect, test } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";

const kustomize = new KubectlKustomize({ kubectl: () => locateKubectl("") });

const secret = (value: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: ${value}\n`;
const configMap = (value: string) => secret(value).replace("Secret", "ConfigMap").replace("stringData", "data");
const containers = (list: string) =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: ${list}}}}\n`;
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
    /yaml: unknown anchor referenced; put a text that begins with \* in quotes in File: s\.yaml$/,
  ],
  [
    "a text with a tag that does not fit",
    { "kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": secret("!!int hunter2` as a !!x") },
    /cannot decode !!str as a !!int$/,
  ],
  [
    "a text in brackets before a colon",
    { "kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": secret("{? [hunter2] : x}") },
    /yaml: invalid map key; put a text that begins with a brace or a bracket in quotes$/,
  ],
  [
    "an inline patch that is not YAML",
    withSecret(`patchesStrategicMerge:\n  - |\n${below(secret("*hunter2"))}`),
    /an inline patch must be the YAML of one object$/,
  ],
  [
    "an inline patch of two objects",
    withSecret(`patchesStrategicMerge:\n  - |\n${below(secret("hunter2\n---\nhunter2"))}`),
    /an inline patch must be the YAML of one object$/,
  ],
  [
    "a JSON patch with a comma too many",
    jsonPatch('[{"op": "add", "path": "/stringData/a", "value": "hunter2",}]'),
    /decoding a JSON patch: invalid character '\}' looking for beginning of object key string$/,
  ],
  [
    "a JSON patch that is too long to be quoted completely",
    jsonPatch(`[{"op": "add", "path": "/stringData/a", "value": "${"hunter2 ".repeat(5000)}",}]`),
    /decoding a JSON patch: invalid character '\}' looking for beginning of object key string$/,
  ],
  [
    "a JSON patch with an unknown operation",
    jsonPatch('[{"op": "hunter2", "path": "/stringData/a"}]'),
    /a JSON patch has an unknown op$/,
  ],
  [
    "an unknown $patch",
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
    "a name that is searched for in a list of lists",
    {
      "kustomization.yaml": "resources: [s.yaml, c.yaml]\nnamePrefix: p-\nconfigurations: [names.yaml]\n",
      "names.yaml": "nameReference: [{kind: ConfigMap, fieldSpecs: [{kind: Secret, path: stringData/password}]}]\n",
      "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
      "s.yaml": secret("[[hunter2]]"),
    },
    /s\.\[noNs\]: a value is expected to be either a string or a map of string$/,
  ],
  [
    "objects that become the same one in a namespace",
    {
      "kustomization.yaml": "namespace: x\nresources: [s.yaml, t.yaml]\n",
      "s.yaml": secret("hunter2"),
      "t.yaml": secret("hunter2").replace("name: s", "name: s, namespace: other"),
    },
    /kustomize: namespace transformation produces ID conflict: two objects would have the same kind, name and namespace$/,
  ],
  [
    "a JSON patch without a target",
    withSecret("patches:\n  - patch: |\n      - {op: add, path: /stringData/a, value: hunter2}\n"),
    /kustomize: must specify a target for JSON patch$/,
  ],
  [
    "two patches in one with a target",
    withSecret(
      `patches:\n  - target: {kind: Secret}\n    patch: |\n${below(below(`${secret("hunter2")}---\n${secret("hunter2")}`))}\n`,
    ),
    /Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` field:$/,
  ],
  [
    "a patch that is both inline and in a file",
    { ...withSecret("patches: [{path: p.yaml, patch: 'hunter2: x'}]\n"), "p.yaml": secret("hunter2") },
    /PatchTransformer: patch and path can't be set at the same time$/,
  ],
  [
    "an invalid selector of objects",
    withSecret(`patches: [{target: {labelSelector: 'a==hunter2==c'}, patch: '[{"op": "remove", "path": "/data"}]'}]\n`),
    /kustomize: found '==', expected: ',' or 'end of string'$/,
  ],
  [
    "a text of a ConfigMap that begins as an alias",
    { "kustomization.yaml": "resources: [c.yaml]\n", "c.yaml": configMap("*hunter2") },
    /yaml: unknown anchor referenced; put a text that begins with \* in quotes in File: c\.yaml$/,
  ],
  [
    "a text of a ConfigMap with a tag that does not fit",
    { "kustomization.yaml": "resources: [c.yaml]\n", "c.yaml": configMap("!!float hunter2") },
    /cannot decode !!str as a !!float$/,
  ],
  [
    "a literal that has no key",
    { "kustomization.yaml": "secretGenerator: [{name: s, literals: [A=hunter2, hunter2]}]\n" },
    /a literal of a generator: expected key=value$/,
  ],
  [
    "arguments of a container that are a single text",
    {
      "kustomization.yaml": "resources: [web.yaml]\npatches: [{path: p.yaml}]\n",
      "web.yaml": containers("[{name: web, image: x}]"),
      "p.yaml": containers("hunter2"),
    },
    /wrong node kind: expected SequenceNode but got ScalarNode$/,
  ],
])("an error of kustomize about %s shows no text of the input", async (_what, files, said) => {
  const built = build(files);
  await expect(built).rejects.toThrow(said);
  await expect(built).rejects.toThrow(/^(?!.*(?:hunter2|104 117|0xc0))/s);
});

function build(files: Record<string, string | Uint8Array>): Promise<string> {
  const tree = Object.entries(files).map(([path, content]) => ({
    path,
    executable: false,
    content: typeof content === "string" ? new TextEncoder().encode(content) : content,
  }));
  return kustomize.build({ files: tree, path: "." });
}

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 1, template: {spec: {containers: [{name: web, image: hunter2}]}}}
`;
const jsonPatchOfWeb = (operation: string) => ({
  "kustomization.yaml": `resources: [web.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - ${operation}\n`,
  "web.yaml": web,
});
const replaced = (from: string, to: string) => ({
  "kustomization.yaml": `resources: [web.yaml, s.yaml]\nreplacements:\n- source: {kind: Secret, name: s, fieldPath: ${from}}\n  targets: [{select: {kind: Deployment}, fieldPaths: [${to}]}]\n`,
  "web.yaml": web,
  "s.yaml": secret("hunter2"),
});

test.each<[string, Record<string, string>]>([
  [
    'invalid Kustomization: json: unknown field "resource"',
    { "kustomization.yaml": "resource: [web.yaml]\n", "web.yaml": web },
  ],
  [
    "invalid Kustomization: json: cannot unmarshal array into Go struct field Kustomization.namePrefix of type string",
    { "kustomization.yaml": "namePrefix: [hunter2]\n" },
  ],
  [
    "accumulating resources: merging resources from 'base/b.yaml': may not add resource with an already registered id: Deployment.v1.apps/web.shop",
    { "kustomization.yaml": "resources: [web.yaml, base/b.yaml]\n", "web.yaml": web, "base/b.yaml": web },
  ],
  [
    "accumulating resources: in 'base': accumulating resources: accumulating resources from 's.yaml': missing metadata.name in object {{v1 Secret} {{ }}}",
    {
      "kustomization.yaml": "resources: [base]\n",
      "base/kustomization.yaml": "resources: [s.yaml]\n",
      "base/s.yaml": "apiVersion: v1\nkind: Secret\nstringData: {a: hunter2}\n",
    },
  ],
  [
    'no resource matches strategic merge patch "Deployment.v1.apps/web.shop": no matches for Id Deployment.v1.apps/web.shop; failed to find unique target for patch Deployment.v1.apps/web.shop; correct the patch\'s kind, name or namespace, or leave it out',
    { "kustomization.yaml": "patches: [{path: p.yaml}]\n", "p.yaml": web },
  ],
  [
    "accumulating resources: in 'eu': may not add resource with an already registered id: Deployment.v1.apps/eu-web.shop",
    {
      "kustomization.yaml": "resources: [web.yaml, eu]\n",
      "eu/kustomization.yaml": "namePrefix: eu-\nresources: [web.yaml]\n",
      "eu/web.yaml": web,
      "web.yaml": web.replace("name: web", "name: eu-web"),
    },
  ],
  [
    "replace operation does not apply: doc is missing path: /spec/template/spec/container/0/image: missing value",
    jsonPatchOfWeb("{op: replace, path: /spec/template/spec/container/0/image, value: hunter2}"),
  ],
  [
    "error in add for path: '/spec/template/spec/containers/5': Unable to access invalid index: 5: invalid index referenced",
    jsonPatchOfWeb("{op: add, path: /spec/template/spec/containers/5, value: hunter2}"),
  ],
  ["testing value /spec/replicas failed: test failed", jsonPatchOfWeb("{op: test, path: /spec/replicas, value: 1337}")],
  [
    "fieldPath `stringData.none` is missing for replacement source Secret.[noVer].[noGrp]/s.[noNs]",
    replaced("stringData.none", "spec.replicas"),
  ],
  ['unable to find field "spec.none.x" in replacement target', replaced("stringData.password", "spec.none.x")],
  [
    "merging of a generator: ConfigMap c does not exist; cannot merge or replace",
    { "kustomization.yaml": "configMapGenerator: [{name: c, behavior: merge, literals: [A=hunter2]}]\n" },
  ],
  [
    "considering field 'metadata/labels' of object Secret.v1.[noGrp]/s.[noNs]: wrong node kind: expected MappingNode but got ScalarNode",
    {
      "kustomization.yaml": "commonLabels: {a: b}\nresources: [s.yaml]\n",
      "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: hunter2}\n",
    },
  ],
  [
    "accumulating components: accumulateDirectory: \"expected kind 'Component' for path 'base' but got 'Kustomization'\"",
    { "kustomization.yaml": "components: [base]\n", "base/kustomization.yaml": "resources: []\n" },
  ],
])("an error of kustomize is shown with names of files, fields and objects: %s", async (said, files) => {
  await expect(build(files)).rejects.toMatchObject({ message: `.: kustomize: ${said}` });
});
