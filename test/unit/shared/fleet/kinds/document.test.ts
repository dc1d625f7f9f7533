import { generateKeyPairSync } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { documentSchemas, jsonSchemaOf, parseDocument, type WritableKind } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";

const apiVersion = "starling.dev/v1alpha1";
const metadata = { name: "web", namespace: "shop" };

const source = (spec: unknown = { git: { url: "https://git.example/app" } }) => ({
  apiVersion,
  kind: "Source",
  metadata,
  spec,
});
const cluster = (spec: unknown) => ({ apiVersion, kind: "Cluster", metadata: { name: "eu-1" }, spec });
const group = (more: Record<string, unknown> = {}) => ({
  apiVersion,
  kind: "SyncGroup",
  metadata,
  spec: { clusters: { all: true }, templates: [{ name: "app", source: "app" }], ...more },
});
const chart = (render: unknown) =>
  group({ templates: [{ name: "app", source: "app", render, apply: { defaultNamespace: "web" } }] });
const template = (fields: Readonly<Record<string, unknown>>) =>
  group({ templates: [{ name: "app", source: "app", ...fields }] });
const eks = { arn: "arn:aws:eks:eu-west-1:111122223333:cluster/prod-1" };
const discovered = { accounts: [111122223333], role: { name: "starling/discovery/scan" }, regions: ["eu-west-1"] };
const endpoint = { server: "https://10.0.0.1:6443", token: { secret: "starling/eu-1" } };

function problems(value: unknown): readonly string[] {
  const parsed = parseDocument(value);
  if (parsed.ok) return semanticProblems(parsed.document).map(({ field, message }) => `${field}: ${message}`);
  return parsed.problems.map(({ field, message }) => `${field}: ${message}`);
}

describe("a valid document", () => {
  test("a document of each kind gets its defaults, and keeps what was written", () => {
    expect(parseDocument(source())).toEqual({
      ok: true,
      document: { ...source(), spec: { git: { url: "https://git.example/app" }, paths: ["."], interval: "5m" } },
    });
    expect(parseDocument(group())).toMatchObject({
      ok: true,
      document: {
        spec: {
          clusters: { all: true },
          templates: [
            { name: "app", source: "app", path: ".", apply: { prune: true, drift: "correct", interval: "10m" } },
          ],
          rollout: {
            maxConcurrent: "10%",
            maxFailures: 0,
            maxUnreachable: "10%",
            progressDeadline: "10m",
            stages: [{ name: "all" }],
          },
        },
      },
    });
    const sync = { apiVersion, kind: "Sync", metadata, spec: { cluster: "eu-1", source: "app", path: "deploy" } };
    expect(parseDocument(sync)).toMatchObject({
      ok: true,
      document: { spec: { path: "deploy", apply: { prune: true } } },
    });
    expect(parseDocument(cluster({ endpoint }))).toEqual({ ok: true, document: cluster({ endpoint }) });
    const byIam = cluster({ eks, access: { role: { name: "starling/clusters/apply" } } });
    expect(parseDocument(byIam)).toEqual({ ok: true, document: byIam });
  });
});

describe("an invalid document", () => {
  test.each<[string, unknown, string[]]>([
    ["no object", "web", [': is "web"; expected an object with apiVersion, kind, metadata and spec']],
    ["a list", [], [": is []; expected an object with apiVersion, kind, metadata and spec"]],
    ["no version", { kind: "Source" }, [`apiVersion: is missing; expected "${apiVersion}"`]],
    ["another version", { ...source(), apiVersion: "v1" }, [`apiVersion: is "v1"; expected "${apiVersion}"`]],
    [
      "a kind with a typo",
      { ...source(), kind: "Syncgroup" },
      [
        'kind: is "Syncgroup"; expected one of Source, Receiver, ClusterDiscovery, Cluster, ClusterValues, Window, SyncGroup, Sync (did you mean SyncGroup?)',
      ],
    ],
    [
      "an account id without quotes",
      { apiVersion, kind: "ClusterDiscovery", metadata: { name: "all" }, spec: { eks: discovered } },
      ['spec.eks.accounts[0]: must be an account id of 12 digits, in quotes: "111122223333" (got 111122223333)'],
    ],
    [
      "another tool's kind",
      { ...source(), kind: "Deployment" },
      [
        'kind: is "Deployment"; expected one of Source, Receiver, ClusterDiscovery, Cluster, ClusterValues, Window, SyncGroup, Sync',
      ],
    ],
    [
      "a JavaScript member as kind",
      { ...source(), kind: "constructor" },
      [expect.stringContaining('kind: is "constructor"')],
    ],
    [
      "no metadata",
      { apiVersion, kind: "Source", spec: source().spec },
      [expect.stringMatching(/^metadata: is required: /)],
    ],
    [
      "no namespace",
      { ...source(), metadata: { name: "a" } },
      [expect.stringMatching(/^metadata\.namespace: is required: /)],
    ],
    [
      "a namespace for a kind without one",
      { ...cluster({ endpoint }), metadata },
      [expect.stringMatching(/^metadata\.namespace: is not a field Starling knows.*; remove it$/)],
    ],
    [
      "a name with capitals",
      { ...source(), metadata: { ...metadata, name: "Web" } },
      [
        'metadata.name: must be 1 to 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit (got "Web")',
      ],
    ],
    [
      "a label's value",
      { ...source(), metadata: { ...metadata, labels: { a: "b c" } } },
      [
        'metadata.labels.a: must be a Kubernetes label value: at most 63 characters of A-Z, a-z, 0-9, -, _ and . (got "b c")',
      ],
    ],
    [
      "a field with a typo",
      source({ git: { url: "https://git.example/app", reff: { branch: "main" } } }),
      ["spec.git.reff: is not a field Starling knows (did you mean ref?); remove it"],
    ],
    [
      "a field that has no effect yet",
      group({ dependsOn: [] }),
      ["spec.dependsOn: is not a field Starling knows; remove it"],
    ],
    [
      "a typo inside a list",
      group({ templates: [{ name: "app", source: "app", paht: "x" }] }),
      ["spec.templates[0].paht: is not a field Starling knows (did you mean path?); remove it"],
    ],
    [
      "two references [source.reference.one]",
      source({ git: { url: "https://git.example/app", ref: { branch: "a", tag: "b" } } }),
      [
        "spec.git.ref: needs exactly one of branch, tag, semver, name or commit (leave ref out to follow the remote's HEAD) (got the fields branch, tag)",
      ],
    ],
    [
      "a short commit",
      source({ git: { url: "https://git.example/app", ref: { commit: "abc123" } } }),
      ['spec.git.ref.commit: must be a full commit id: 40 hexadecimal digits in lower case (got "abc123")'],
    ],
    [
      "a path that leaves",
      source({ git: { url: "https://git.example/app" }, paths: ["../x"] }),
      [
        'spec.paths[0]: must be a relative path without "..", and without a / at its end, such as deploy/base, or "." for everything (got "../x")',
      ],
    ],
    [
      "an interval too short",
      source({ git: { url: "https://git.example/app" }, interval: "1s" }),
      ['spec.interval: must be a duration such as 30s, 5m or 1h30m, from 10s to 24h (got "1s")'],
    ],
    [
      "an interval that is a number",
      source({ git: { url: "https://git.example/app" }, interval: 5 }),
      ["spec.interval: must be a duration such as 30s, 5m or 1h30m, from 10s to 24h (got 5)"],
    ],
    [
      "an empty selector",
      group({ clusters: { selector: {} } }),
      [
        "spec.clusters.selector: is empty and would match every cluster; write clusters: {all: true} if that is meant (got {})",
      ],
    ],
    [
      "an empty selection",
      group({ clusters: {} }),
      [
        "spec.clusters: needs exactly one of selector, names or all: true (notNames may be added to any of them) (got {})",
      ],
    ],
    ["no templates", group({ templates: [] }), ["spec.templates: must have at least one template (got [])"]],
    [
      "two ways to render",
      chart({ plain: {}, helm: {} }),
      [expect.stringMatching(/^spec\.templates\[0\]\.render: needs exactly one of plain, kustomize or helm/)],
    ],
    [
      "a chart without a namespace",
      group({ templates: [{ name: "app", source: "app", render: { helm: {} } }] }),
      [
        "spec.templates[0].apply.defaultNamespace: is required for a Helm chart: the namespace of its release, as with helm install --namespace",
      ],
    ],
    [
      "a release name that Helm refuses",
      chart({ helm: { releaseName: "Web" } }),
      [expect.stringMatching(/^spec\.templates\[0\]\.render\.helm\.releaseName: must be 1 to 53 characters/)],
    ],
    [
      "a name that is too long for a release",
      {
        ...group(),
        kind: "Sync",
        metadata: { ...metadata, name: "a".repeat(54) },
        spec: { cluster: "c", source: "s", render: { helm: {} }, apply: { defaultNamespace: "web" } },
      },
      [expect.stringMatching(/^spec\.render\.helm\.releaseName: is required: the name "a{54}" is longer than the 53/)],
    ],
    [
      "an expression about an unknown part of a cluster",
      chart({ helm: { values: { a: [{ b: "{{ cluster.colour }}" }] }, valuesFrom: [{ path: "{{ now }}.yaml" }] } }),
      [
        expect.stringMatching(
          /^spec\.templates\[0\]\.render\.helm\.valuesFrom\[0\]\.path: "{{ now }}" is not an expression/,
        ),
        expect.stringMatching(
          /^spec\.templates\[0\]\.render\.helm\.values: "{{ cluster\.colour }}" is not an expression/,
        ),
      ],
    ],
    [
      "parameters whose name or value has the wrong form",
      template({ substitute: true, parameters: { "a-b": "x", N: 3, C: "{{ cluster.colour | upper }}" } }),
      [
        expect.stringMatching(
          /^spec\.templates\[0\]\.parameters\.a-b: has the wrong key: it must be a name such as DOMAIN/,
        ),
        expect.stringMatching(/^spec\.templates\[0\]\.parameters\.N: must be a text; put it in quotes \(got 3\)/),
      ],
    ],
    [
      "an expression that Starling does not know",
      template({ substitute: true, parameters: { C: "{{ cluster.colour }}" } }),
      [expect.stringMatching(/^spec\.templates\[0\]\.parameters\.C: "{{ cluster\.colour }}" is not an expression/)],
    ],
    [
      "parameters that nothing uses",
      template({ parameters: { DOMAIN: "x" } }),
      [
        `spec.templates[0].parameters: have no effect; set substitute: true, which replaces \${DOMAIN} in the texts of objects, or use an expression such as {{ params.DOMAIN }}`,
      ],
    ],
    [
      "parameters that refer to each other",
      template({ targetNamespace: "{{ params.A }}", parameters: { A: "x-{{ params.B }}", B: "b" } }),
      [expect.stringMatching(/^spec\.templates\[0\]\.parameters\.A: refers to a parameter; write its text here/)],
    ],
    [
      "a parameter in a value that is no expression",
      template({ render: { helm: { values: { a: "{{ params.a-b }}" } } }, apply: { defaultNamespace: "a" } }),
      [
        expect.stringMatching(
          /^spec\.templates\[0\]\.render\.helm\.values: "\{\{ params\.a-b \}\}" is not an expression/,
        ),
      ],
    ],
    [
      "edits that would change nothing, or two things at once",
      template({
        images: [
          { name: "a" },
          { name: "b", newTag: "1", digest: `sha256:${"a".repeat(64)}` },
          { name: "web[(]", newTag: "a b" },
        ],
        targetNamespace: "Shop",
        namePrefix: "A_",
        patches: [{ target: { kind: "Deployment" } }],
        components: ["../other"],
      }),
      [
        expect.stringMatching(/^spec\.templates\[0\]\.targetNamespace: must be the name of a namespace/),
        expect.stringMatching(/^spec\.templates\[0\]\.components\[0\]: must be a relative path without "\.\."/),
        expect.stringMatching(/^spec\.templates\[0\]\.patches\[0\]\.patch: is required/),
        expect.stringMatching(/^spec\.templates\[0\]\.namePrefix: must be characters of a-z, 0-9, - and \./),
        expect.stringMatching(/^spec\.templates\[0\]\.images\[0\]: needs newName, newTag or digest/),
        expect.stringMatching(/^spec\.templates\[0\]\.images\[1\]: has newTag and digest; keep one of them/),
        expect.stringMatching(/^spec\.templates\[0\]\.images\[2\]\.name: must be the name of an image/),
        expect.stringMatching(/^spec\.templates\[0\]\.images\[2\]\.newTag: must be a tag/),
      ],
    ],
    [
      "createNamespace without a namespace",
      template({ createNamespace: {}, overrides: [{ clusters: { all: true }, parameters: { A: "{{ now }}" } }] }),
      [
        "spec.templates[0].createNamespace: needs targetNamespace: the name of the namespace to create",
        expect.stringMatching(/^spec\.templates\[0\]\.overrides\[0\]\.parameters\.A: "{{ now }}" is not an expression/),
        expect.stringMatching(/^spec\.templates\[0\]\.overrides\[0\]\.parameters: have no effect; set substitute/),
      ],
    ],
    [
      "values that are not a file",
      chart({ helm: { values: { a: "x".repeat(70_000) } } }),
      [expect.stringMatching(/^spec\.templates\[0\]\.render\.helm\.values: must have at most 65536 bytes as JSON/)],
    ],
    [
      "a number that Helm would round",
      chart({ helm: { values: { a: { b: 9007199254740993n } } } }),
      [expect.stringMatching(/^spec\.templates\[0\]\.render\.helm\.values: contains an integer beyond 2\^53/)],
    ],
    [
      "files of values outside of the repository",
      chart({ helm: { valuesFrom: [{ path: "../a.yaml" }, { path: "/etc/passwd" }] } }),
      [
        expect.stringMatching(/valuesFrom\[0\]\.path: must be a relative path/),
        expect.stringMatching(/valuesFrom\[1\]\.path: must be a relative path/),
      ],
    ],
    [
      "two templates with the same name",
      group({
        templates: [
          { name: "a", source: "a" },
          { name: "a", source: "b" },
        ],
      }),
      [expect.stringMatching(/^spec\.templates: has two templates with the same name/)],
    ],
    [
      "a space in a percentage",
      group({ rollout: { maxConcurrent: "10 %" } }),
      [
        'spec.rollout.maxConcurrent: must be a whole number such as 3, or a percentage from "0%" to "100%" (got "10 %")',
      ],
    ],
    [
      "a count that is neither number nor text",
      group({ rollout: { maxConcurrent: true } }),
      ['spec.rollout.maxConcurrent: must be a whole number such as 3, or a percentage from "0%" to "100%" (got true)'],
    ],
    [
      "no catch-all stage",
      group({ rollout: { stages: [{ name: "a", clusters: { all: true } }] } }),
      [
        'spec.rollout.stages: must end with exactly one catch-all stage, one without clusters, so that no cluster is left out in silence (got [{"name":"a","clusters":{"all":true}}])',
      ],
    ],
    ...(
      [
        ["starling/eu-1\r\n", "a line end"],
        ["starling/\neu-1", "a line end"],
        ["starling/eu 1", "a space"],
        ["", "nothing"],
        ["starling/eu-1;$(id)", "another character"],
        ["starling/eu-\u202e1", "another character"],
      ] as const
    ).flatMap(([secret, held]): readonly [string, unknown, string[]][] => {
      const rule = `holds ${held}; the name or ARN of a secret has letters, digits and the characters /_+=.@:- only`;
      const credentials = { secret, kind: "basic" };
      return [
        [
          `a cluster's secret whose name is ${JSON.stringify(secret)}`,
          cluster({ endpoint: { ...endpoint, token: { secret } } }),
          [`spec.endpoint.token.secret: ${rule}`],
        ],
        [
          `a Source's secret whose name is ${JSON.stringify(secret)}`,
          source({ git: { url: "https://git.example/app", credentials } }),
          [`spec.git.credentials.secret: ${rule}`],
        ],
      ];
    }),
    [
      "a server without TLS",
      cluster({ endpoint: { ...endpoint, server: "http://10.0.0.1" } }),
      ['spec.endpoint.server: must be an https URL such as https://10.0.0.1:6443 (got "http://10.0.0.1")'],
    ],
    ...["https:/admin:hunter2@10.0.0.1", "https:admin:hunter2@10.0.0.1"].map((server): [string, unknown, string[]] => [
      `a server with a password behind ${server.slice(0, 7)}`,
      cluster({ endpoint: { ...endpoint, server } }),
      ["spec.endpoint.server: must not contain a user name or password; use token.secret"],
    ]),
    [
      "a server with a password behind backslashes",
      cluster({ endpoint: { ...endpoint, server: "https:\\\\admin:hunter2@10.0.0.1" } }),
      ["spec.endpoint.server: must not contain a backslash, a space or a line end; write it as https://HOST:PORT"],
    ],
    [
      "a server with a token in its query",
      cluster({ endpoint: { ...endpoint, server: "https://10.0.0.1/?token=hunter2" } }),
      ["spec.endpoint.server: must not have a query or a fragment, which requests would not send; remove it"],
    ],
    [
      "a server with a password",
      cluster({ endpoint: { ...endpoint, server: "https://admin:hunter2@10.0.0.1" } }),
      ["spec.endpoint.server: must not contain a user name or password; use token.secret"],
    ],
    [
      "a cluster in two places",
      cluster({ eks, endpoint }),
      [expect.stringMatching(/^spec: needs exactly one of eks or endpoint \(got /)],
    ],
    [
      "another address by http, with a password",
      cluster({ eks: { ...eks, endpointOverride: { server: "http://admin:hunter2@10.0.0.1" } } }),
      [expect.not.stringContaining("hunter2")],
    ],
    [
      "another address with a password",
      cluster({ eks: { ...eks, endpointOverride: { server: "https:/admin:hunter2@10.0.0.1" } } }),
      ["spec.eks.endpointOverride.server: must not contain a user name or password; Starling signs in by IAM"],
    ],
    [
      "another address with a path and a backslash",
      cluster({ eks: { ...eks, endpointOverride: { server: "https://10.0.0.1\\@evil.example" } } }),
      [
        "spec.eks.endpointOverride.server: must not contain a backslash, a space or a line end; write it as https://HOST:PORT",
      ],
    ],
    [
      "another address without a server",
      cluster({ eks: { ...eks, endpointOverride: {} } }),
      [expect.stringMatching(/^spec\.eks\.endpointOverride\.server: is required/)],
    ],
    [
      "another address with an authority",
      cluster({ eks: { ...eks, endpointOverride: { server: "https://10.0.0.1", caData: "aGVsbG8=" } } }),
      [
        "spec.eks.endpointOverride.caData: is EKS' to say: with another authority, a Cluster could have the token sent to another server; remove it, and let the address lead to the API server itself, without a proxy that ends TLS",
      ],
    ],
    [
      "another address with a field in the wrong case",
      cluster({ eks: { ...eks, endpointOverride: { server: "https://10.0.0.1", tlsServername: "a" } } }),
      [expect.stringContaining("did you mean tlsServerName?")],
    ],
    [
      "another address without its cluster",
      cluster({ eks: { endpointOverride: { server: "https://10.0.0.1" } } }),
      [expect.stringMatching(/^spec\.eks\.arn: is required/)],
    ],
    [
      "an ARN of another resource",
      cluster({ eks: { arn: "arn:aws:iam::111122223333:role/a" } }),
      [
        'spec.eks.arn: must be the ARN of an EKS cluster such as arn:aws:eks:eu-west-1:111122223333:cluster/prod-1 (got "arn:aws:iam::111122223333:role/a")',
      ],
    ],
    [
      "a role by its ARN",
      cluster({ eks, access: { role: { name: "arn:aws:iam::111122223333:role/a" } } }),
      [expect.stringMatching(/^spec\.access\.role\.name: must be the name of an IAM role in the cluster's account/)],
    ],
    [
      "an external id that the user chose",
      cluster({ eks, access: { role: { name: "a", externalId: "fleet-7" } } }),
      [
        "spec.access.role.externalId: is Starling's to choose, so that no Cluster takes another one's; remove it, and let the role's trust policy ask for the one that `starling describe cluster` shows",
      ],
    ],
    [
      "a role for an endpoint",
      cluster({ endpoint, access: { role: { name: "a" } } }),
      [expect.stringMatching(/^spec\.access\.role: must not stand beside endpoint/)],
    ],
    [
      "several problems at once",
      group({ clusters: { names: ["A"] }, rollout: { maxFailures: -1 } }),
      [
        expect.stringMatching(/^spec\.clusters\.names\[0\]: must be 1 to 63 characters/),
        expect.stringMatching(/^spec\.rollout\.maxFailures: /),
      ],
    ],
    [
      "a value too long to show",
      source({ git: { url: "https://git.example/app" }, interval: "x".repeat(200) }),
      [expect.stringMatching(/\(got "x{76}\.\.\.\)$/)],
    ],
  ])("a document with %s is refused", (_name, value, expected) => {
    expect(problems(value)).toEqual(expected);
  });

  test.each<[string, unknown, RegExp]>([
    [
      "a range",
      source({ git: { url: "https://git.example/a", ref: { semver: ">=1.x.y" } } }),
      /^spec\.git\.ref\.semver: /,
    ],
    ["a URL", source({ git: { url: "git@git.example:a" } }), /^spec\.git\.url: /],
    [
      "a path of a template",
      group({ templates: [{ name: "a", source: "a", path: "{{ cluster }}" }] }),
      /^spec\.templates\[0\]\.path: /,
    ],
    [
      "a path of a Sync",
      { apiVersion, kind: "Sync", metadata, spec: { cluster: "c", source: "a", path: "{{ x" } },
      /^spec\.path: /,
    ],
  ])("a check beyond the schema refuses %s", (_name, value, expected) => {
    expect(problems(value)).toEqual([expect.stringMatching(expected)]);
  });
});

describe("the certificate authority of a cluster", () => {
  const withAuthority = (caData: string) => cluster({ endpoint: { ...endpoint, caData } });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "sec1", format: "pem" });
  let authority = "";
  beforeAll(async () => {
    authority = (await createTlsCertificate()).cert;
  });

  test("the authority of a cluster may have several certificates, and text around them", () => {
    expect(problems(withAuthority(base64(authority)))).toEqual([]);
    expect(problems(withAuthority(base64(`# old\n${authority}\n# new\n${authority}\n`)))).toEqual([]);
  });

  test.each<[string, () => string, RegExp]>([
    [
      "nothing",
      () => "",
      /^is empty, so that the connection would trust the public authorities; .*, or leave caData out$/,
    ],
    ["a space", () => "  \n", /^is empty/],
    ["PEM that is not in base64", () => authority, /^must be base64 on one line/],
    ["base64 in lines", () => base64(authority).replaceAll(/(.{64})/g, "$1\n"), /^must be base64 on one line/],
    ["base64 that is cut off", () => base64(authority).slice(0, -1), /^must be base64 on one line/],
    ["no PEM", () => base64("hello, world"), /^contains no PEM certificate/],
    [
      "PEM without a certificate",
      () => base64("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
      /not a readable certificate/,
    ],
    [
      "a certificate that is none",
      () => base64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
      /not a readable certificate/,
    ],
    ["half a certificate", () => base64(authority.slice(0, 200)), /not a readable certificate/],
    ["a certificate and half of one", () => base64(authority + authority.slice(0, 200)), /not a readable certificate/],
    ["a certificate and its key", () => base64(authority + key), /^contains a private key/],
    ["a key", () => base64(`${key}`), /^contains a private key/],
    ["an encrypted key", () => base64("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA"), /^contains a private key/],
  ])("the authority of a cluster may not be %s", (_name, caData, expected) => {
    const found = problems(withAuthority(caData()));
    expect(found).toHaveLength(1);
    expect(found[0]?.replace("spec.endpoint.caData: ", "")).toMatch(expected);
    expect(found[0], "the value may be a key").not.toContain("got");
  });
});

test.each([
  [{ matchLabels: { team: true } }, ".matchLabels.team must be a text: put it in quotes (got true)"],
  [
    { matchExpressions: [{ key: "team", operator: "in", values: ["a"] }] },
    '.matchExpressions[0].operator must be one of In, NotIn, Exists, DoesNotExist (got "in")',
  ],
])("a mistake in the selector of a Receiver's Source is named by its own field: %j", (selector, words) => {
  const spec = { provider: "github", sources: ["app", { selector }], secrets: ["starling/hooks/web"] };
  const parsed = parseDocument({ apiVersion, kind: "Receiver", metadata, spec });
  if (parsed.ok) throw new Error("it was taken");
  const texts = parsed.problems.map(({ field, message }) => `${field} ${message}`);
  expect(texts.map((text) => text.replace("spec.sources[1].selector", "").replace(/^ /, ""))).toEqual([words]);
});

describe("the published schema", () => {
  test.each(Object.keys(documentSchemas) as WritableKind[])(
    "the schema of %s requires the fields without defaults, and closes every object",
    (kind) => {
      const schema = jsonSchemaOf(kind) as { required: string[]; additionalProperties: boolean; properties: object };
      expect(schema.required).toEqual(["apiVersion", "kind", "metadata", "spec"]);
      expect(schema.additionalProperties).toBe(false);
      expect(JSON.stringify(schema)).not.toMatch(/"required":\[[^\]]*"(interval|paths|rollout|apply)"/);
    },
  );
});

test.each([
  [
    "argoproj.io/v1alpha1",
    "Application",
    "this Application is for Argo CD; for Starling to do what it says, write a template",
  ],
  ["argoproj.io/v1alpha1", "ApplicationSet", "write a SyncGroup whose spec.clusters selects the clusters"],
  ["kustomize.toolkit.fluxcd.io/v1", "Kustomization", "this Kustomization is for Flux"],
  ["helm.toolkit.fluxcd.io/v2", "HelmRelease", "this HelmRelease is for Flux"],
  ["fleet.cattle.io/v1alpha1", "GitRepo", "this GitRepo is for Fleet"],
])("a document for another tool is reported as such, with what to write instead: %s %s", (apiVersion, kind, words) => {
  const parsed = parseDocument({ apiVersion, kind, metadata: { name: "a" }, spec: {} });
  if (parsed.ok) throw new Error("it was taken");
  expect(parsed.problems).toEqual([{ field: "apiVersion", message: expect.stringContaining(words) }]);
});
