import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import { stringifyJson } from "#shared/base/json.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

function read(text: string) {
  return readManifests(parseManifests(text, "app.yaml"));
}

function object(text: string): unknown {
  return JSON.parse(stringifyJson(read(text)[0]?.object));
}

const configMap = "apiVersion: v1\nkind: ConfigMap\n";

const refused: readonly (readonly [legend: string, text: string, message: string])[] = [
  [
    "no kind",
    "replicas: 1\nimage: x",
    "app.yaml:1, document 1: is not a Kubernetes object (it has neither apiVersion nor kind",
  ],
  ["no kind but a version", "apiVersion: v1\nmetadata: {name: a}", "app.yaml:1, document 1, kind: is missing"],
  [
    "no metadata",
    "---\n---\napiVersion: v1\nkind: ConfigMap",
    "app.yaml:3, document 2, ConfigMap, metadata: is missing",
  ],
  ["no name", `${configMap}metadata: {namespace: x}`, "metadata.name: is missing"],
  ["an empty name", `${configMap}metadata: {name: ""}`, "metadata.name: got the string"],
  ["a name that is a number", `${configMap}metadata: {name: 12}`, "metadata.name: got the number 12"],
  [
    "a name that leads elsewhere",
    `${configMap}metadata: {name: ../../secrets/x}`,
    'metadata.name: got the string ../../secrets/x, which must not contain "/": it becomes a part of the object\'s address',
  ],
  [
    "a name that is encoded",
    `${configMap}metadata: {name: a%2fb}`,
    "metadata.name: got the string a%2fb, which must not",
  ],
  ["a name of two dots", `${configMap}metadata: {name: ..}`, 'which must not be ".."'],
  ["a namespace that leads elsewhere", `${configMap}metadata: {name: a, namespace: ../x}`, "metadata.namespace: got"],
  ["a kind that leads elsewhere", "apiVersion: v1\nkind: a/b\nmetadata: {name: a}", "kind: got the string a/b"],
  ["a version with two slashes", "apiVersion: a/b/c\nkind: X\nmetadata: {name: a}", "apiVersion: got the string a/b/c"],
  [
    "a group of two dots",
    "apiVersion: ../v1\nkind: X\nmetadata: {name: a}",
    'apiVersion: got the string ../v1, which must not be ".."',
  ],
  ["generateName", `${configMap}metadata: {generateName: a-}`, "metadata.generateName: cannot be synced"],
  [
    "a namespace that is a number",
    `${configMap}metadata: {name: a, namespace: 1}`,
    "metadata.namespace: got the number 1",
  ],
  [
    "a label that is a number",
    `${configMap}metadata: {name: a, labels: {app: 1}}`,
    'ConfigMap a, metadata.labels["app"]: got the number 1, expected a string; put it in quotes',
  ],
  [
    "an annotation that is yes",
    `${configMap}metadata: {name: a, annotations: {on-call: yes}}`,
    'metadata.annotations["on-call"]: got the boolean true',
  ],
  [
    "labels that are a list",
    `${configMap}metadata: {name: a, labels: [x]}`,
    "metadata.labels: got a list, expected a map",
  ],
  [
    "an owner's mark",
    `${configMap}metadata: {name: a, labels: {applyset.kubernetes.io/part-of: x}}`,
    "Starling sets this label itself to mark the owner of an object: remove it",
  ],
  [
    "an item of a list without a name",
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {}",
    "items[0].metadata.name: is missing",
  ],
  ["an item that is no object", "apiVersion: v1\nkind: List\nitems: [3]", "items[0]: got the number 3"],
  [
    "stringData that is a list",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: [hunter2]",
    "Secret a, stringData: must be a map of keys and texts, such as `password: text`",
  ],
  [
    "stringData that is a text",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: hunter2",
    "Secret a, stringData: must be a map of keys and texts, such as `password: text`",
  ],
  [
    "stringData that is a number",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 31337}",
    'Secret a, stringData["pin"]: is a number, expected a string',
  ],
];

describe("readManifests", () => {
  test.each(refused)("a manifest with %s is refused, with its place", (_legend, text, message) => {
    expect(() => read(text)).toThrow(message);
    expect(() => read(text)).toThrow(ManifestError);
  });

  test("a refused Secret is not shown in the message", () => {
    const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 31337}";
    expect(() => read(text)).toThrow(/^(?!.*31337)/s);
  });

  test("the keys of stringData become keys of a Secret's data", () => {
    const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {__proto__: a, constructor: b}";
    expect(object(text)).toHaveProperty("data", JSON.parse('{"__proto__": "YQ==", "constructor": "Yg=="}'));
  });

  test("lists are flattened at every depth, and objects are sorted by identity", () => {
    const text = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: z, namespace: b}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - {metadata: {name: c}}
---
apiVersion: v1
kind: List
`;
    expect(read(text).map((manifest) => manifest.id)).toEqual([
      { group: "", kind: "ConfigMap", namespace: "", name: "c" },
      { group: "", kind: "Secret", namespace: "b", name: "z" },
      { group: "apps", kind: "Deployment", namespace: "", name: "a" },
    ]);
  });

  test("a kind that only sounds like a list is an object", () => {
    const text = "apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: [1]}";
    expect(read(text).map((manifest) => manifest.id.kind)).toEqual(["AllowList"]);
  });

  test("the configuration of kustomize is dropped", () => {
    const text = `apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n${configMap}metadata: {name: a}`;
    expect(read(text).map((manifest) => manifest.id.name)).toEqual(["a"]);
  });

  test("names keep colons and capitals, and integers keep every digit", () => {
    const text = `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "system:Reader"}\nmax: 9007199254740993`;
    expect(stringifyJson(read(text)[0]?.object)).toContain('"max":9007199254740993');
    expect(read(text)[0]?.id.name).toBe("system:Reader");
  });

  test("two objects with one identity are refused, also in two versions", () => {
    const hpa = (version: string) =>
      `apiVersion: autoscaling/${version}\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop}\n`;
    expect(() => read(`${hpa("v1")}---\n${hpa("v2")}`)).toThrow(
      "app.yaml:5, document 2, HorizontalPodAutoscaler.autoscaling shop/web: is also in app.yaml:1, document 1 (as autoscaling/v1 and autoscaling/v2: the version is not part of the identity); remove one of them",
    );
    expect(() => read(`${configMap}metadata: {name: a}\n---\n${configMap}metadata: {name: a, namespace: ""}`)).toThrow(
      "is also in app.yaml:1",
    );
  });

  test("objects with one name in two namespaces, groups or kinds are two objects", () => {
    const text = [
      `${configMap}metadata: {name: a, namespace: x}`,
      `${configMap}metadata: {name: a, namespace: w}`,
      "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: x}",
      "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a, namespace: x}",
    ].join("\n---\n");
    expect(read(text)).toHaveLength(4);
  });
});

describe("normalised objects", () => {
  test("fields that only a server writes are removed", () => {
    const text = `${configMap}metadata:
  name: a
  namespace: null
  resourceVersion: "1"
  uid: u
  generation: 2
  creationTimestamp: null
  selfLink: /x
  deletionTimestamp: x
  deletionGracePeriodSeconds: 1
  managedFields: []
  labels: {a: b}
  finalizers: [x/y]
status: {phase: x}
data: {a: b}`;
    expect(object(text)).toEqual({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", labels: { a: "b" }, finalizers: ["x/y"] },
      data: { a: "b" },
    });
  });

  test("stringData is merged into data and wins", () => {
    const text =
      "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {x: b2xk, w: eQ==}\nstringData: {x: né, z: ''}";
    expect(object(text)).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a" },
      data: { x: "bsOp", w: "eQ==", z: "" },
    });
  });

  test("a Secret of another group keeps its stringData", () => {
    const text = "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\nstringData: {x: w}";
    expect(object(text)).toMatchObject({ stringData: { x: "w" } });
  });

  const podKinds: readonly (readonly [kind: string, apiVersion: string, path: readonly string[]])[] = [
    ["Pod", "v1", ["spec"]],
    ["Deployment", "apps/v1", ["spec", "template", "spec"]],
    ["CronJob", "batch/v1", ["spec", "jobTemplate", "spec", "template", "spec"]],
  ];
  test.each(podKinds)("container ports of a %s get a protocol", (kind, apiVersion, path) => {
    const spec = {
      containers: [
        { name: "c", ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }] },
        { name: "d" },
      ],
      initContainers: [{ name: "i", ports: [{ containerPort: 81 }] }],
    };
    const nested = path.toReversed().reduce<unknown>((inner, key) => ({ [key]: inner }), spec);
    const result = object(stringifyJson({ apiVersion, kind, metadata: { name: "a" }, ...(nested as object) }));
    const expected = path.toReversed().reduce<unknown>((inner, key) => ({ [key]: inner }), {
      containers: [
        {
          name: "c",
          ports: [
            { containerPort: 80, protocol: "TCP" },
            { containerPort: 53, protocol: "UDP" },
          ],
        },
        { name: "d" },
      ],
      initContainers: [{ name: "i", ports: [{ containerPort: 81, protocol: "TCP" }] }],
    });
    expect(result).toMatchObject(expected as object);
  });

  test("Service ports get a protocol", () => {
    expect(object("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}")).toMatchObject({
      spec: { ports: [{ port: 80, protocol: "TCP" }] },
    });
  });

  test.each([
    [
      "Deployment",
      "apps/v1",
      "metadata: {name: a, annotations: {}, labels: {}}\nspec: {template: {metadata: {annotations: {}}}}",
    ],
    [
      "CronJob",
      "batch/v1",
      "metadata: {name: a, annotations: {}}\nspec: {jobTemplate: {spec: {template: {metadata: {labels: {}}}}}}",
    ],
    ["ConfigMap", "v1", "metadata: {name: a}\ndata: {}\nbinaryData: {}"],
    ["ServiceAccount", "v1", "metadata: {name: a}\nimagePullSecrets: []\nsecrets: []"],
    ["Widget", "example.org/v1", "metadata: {name: a, annotations: {}}"],
  ])("empty maps that a controller fills are removed from a %s", (kind, apiVersion, rest) => {
    const found = JSON.stringify(object(`apiVersion: ${apiVersion}\nkind: ${kind}\n${rest}`));
    expect(found).not.toMatch(/"(annotations|labels|data|binaryData|imagePullSecrets|secrets)":/);
  });

  test.each([
    ["NetworkPolicy", "networking.k8s.io/v1", "spec: {podSelector: {}, ingress: []}"],
    ["Widget", "example.org/v1", "spec: {metadata: {annotations: {}}, data: {}}"],
    ["Pod", "v1", "spec: {volumes: [{name: v, emptyDir: {}}], nodeSelector: {}}"],
  ])("an empty part that has a meaning stays in a %s", (kind, apiVersion, spec) => {
    const written = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: a}\n`;
    expect(object(`${written}${spec}`)).toHaveProperty("spec", load(spec.replace(/^spec: /, "")));
  });

  test.each(["rules: []", "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"])(
    "the rules of an aggregated ClusterRole are left to the controller: %s",
    (rules) => {
      const role = (rest: string) =>
        object(`apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n${rest}\n${rules}`);
      const aggregated = role("aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}");
      expect(aggregated).not.toHaveProperty("rules");
      expect(aggregated).toHaveProperty("aggregationRule");
      expect(role("")).toHaveProperty("rules");
    },
  );

  test("a placeholder certificate authority is removed, and a real one is kept", () => {
    const crd = (caBundle: string) =>
      `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {conversion: {webhook: {clientConfig: {caBundle: ${caBundle}}}}}`;
    const pem = Buffer.from("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----").toString("base64");
    expect(object(crd("Cg=="))).toMatchObject({ spec: { conversion: { webhook: { clientConfig: {} } } } });
    expect(JSON.stringify(object(crd("Cg==")))).not.toContain("caBundle");
    expect(JSON.stringify(object(crd(pem)))).toContain(pem);
  });
});
