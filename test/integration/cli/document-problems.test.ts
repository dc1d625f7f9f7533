import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDocument, type WritableKind } from "#shared/fleet/kinds/document.ts";
import { secretFormWarnings } from "#shared/fleet/kinds/secret-folder.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { steadySeed } from "#test/support/run-seed.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

let cli: CliFixture;
beforeAll(async () => {
  cli = await startCliFixture();
});
afterAll(() => cli.stop());

const apiVersion = "starling.dev/v1alpha1";
const metadata = { name: "web", namespace: "shop", labels: { app: "web" }, annotations: { note: "x" } };
const template = {
  name: "web",
  source: "app",
  path: "deploy/{{ cluster.name }}",
  render: { kustomize: {} },
  apply: { prune: true, drift: "report", interval: "10m", defaultNamespace: "web" },
};
const selection = {
  selector: { matchLabels: { env: "prod" }, matchExpressions: [{ key: "ring", operator: "Exists" }] },
};

const right: Readonly<Record<WritableKind, object>> = {
  Source: {
    apiVersion,
    kind: "Source",
    metadata,
    spec: {
      git: {
        url: "https://git.example/app",
        ref: { semver: ">=1.2", tagPrefix: "v" },
        credentials: { secret: "starling/git/app", kind: "basic" },
      },
      paths: ["deploy"],
      interval: "5m",
    },
  },
  Receiver: {
    apiVersion,
    kind: "Receiver",
    metadata,
    spec: {
      provider: "github",
      sources: ["app", { selector: { matchLabels: { team: "web" } } }],
      secrets: ["starling/hooks/app"],
      events: ["push"],
    },
  },
  ClusterDiscovery: {
    apiVersion,
    kind: "ClusterDiscovery",
    metadata: { name: "apps" },
    spec: { eks: { accounts: ["111122223333"], role: { name: "starling/discovery/scan" }, regions: ["eu-west-1"] } },
  },
  Cluster: {
    apiVersion,
    kind: "Cluster",
    metadata: { name: "eu-1", labels: { env: "prod" } },
    spec: {
      endpoint: { server: "https://10.0.0.1:6443", token: { secret: "starling/clusters/a" } },
      values: { domain: "x" },
    },
  },
  ClusterValues: {
    apiVersion,
    kind: "ClusterValues",
    metadata: { name: "eu" },
    spec: { clusters: { names: ["eu-1"] }, priority: 10, values: { domain: "x", ports: [80, 443], on: true } },
  },
  Window: {
    apiVersion,
    kind: "Window",
    metadata: { name: "office" },
    spec: {
      clusters: selection,
      allow: [{ cron: "0 9 * * 1-5", duration: "8h", timeZone: "Europe/London" }],
      deny: [{ start: "2026-12-24T00:00:00Z", end: "2027-01-02T00:00:00Z" }],
    },
  },
  SyncGroup: {
    apiVersion,
    kind: "SyncGroup",
    metadata,
    spec: {
      clusters: selection,
      templates: [template],
      rollout: {
        maxConcurrent: "10%",
        maxFailures: 0,
        stages: [{ name: "first", clusters: { names: ["eu-1"] } }, { name: "rest" }],
      },
    },
  },
  Sync: { apiVersion, kind: "Sync", metadata, spec: { cluster: "eu-1", ...template, name: undefined } },
};

const wrongValues: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  "",
  "A b",
  "..",
  "{{ x",
  "\u001b[2J\u202e",
  "é".repeat(3000),
  [],
  {},
  [[[1]]],
  { unknown: 1 },
  "12345678901234567890",
];

interface Step {
  readonly holder: Record<string | number, unknown>;
  readonly key: string | number;
}

/** All members of a document, at any depth. */
function membersOf(value: unknown): readonly Step[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Record<string | number, unknown>;
  return Object.keys(value).flatMap((key) => [{ holder, key }, ...membersOf(holder[key])]);
}

/** A document with no, one or two mistakes. */
const documents = fc
  .record({
    kind: fc.constantFrom<WritableKind>(
      "Source",
      "Receiver",
      "Cluster",
      "ClusterValues",
      "Window",
      "SyncGroup",
      "Sync",
    ),
    changes: fc.array(
      fc.record({
        at: fc.nat(),
        how: fc.constantFrom("replace", "remove", "add", "rename"),
        value: fc.constantFrom(...wrongValues),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  })
  .map(({ kind, changes }) => {
    const document: unknown = JSON.parse(JSON.stringify(right[kind]));
    for (const { at, how, value } of changes) {
      const members = membersOf(document);
      const { holder, key } = members[at % members.length] as Step;
      if (how === "replace") holder[key] = value;
      else if (how === "add") holder[`${key}x`] = value;
      else {
        if (how === "rename") holder[`${key}\u0007`] = holder[key];
        delete holder[key];
      }
    }
    return document;
  })
  // Only the API knows whether a cluster was discovered, and which secrets its installation reads.
  .filter((document) => !isRestOfCluster(document) && !namesOtherSecret(document));

function namesOtherSecret(document: unknown): boolean {
  const parsed = parseDocument(document);
  return parsed.ok && secretFormWarnings(parsed.document).length > 0;
}

function isRestOfCluster(document: unknown): boolean {
  const { kind, spec } = document as { readonly kind?: unknown; readonly spec?: unknown };
  if (kind !== "Cluster" || typeof spec !== "object" || spec === null) return false;
  return !Object.hasOwn(spec, "eks") && !Object.hasOwn(spec, "endpoint");
}

const escaped = (text: string) => text.replaceAll("\u0007", "\\u0007").replaceAll("\u202e", "\\u202e");

describe("validate, apply and the API", () => {
  test("validate, apply and the API report the same problems of any document", async () => {
    const api = apiFixture();
    // Without a context there is no namespace from it.
    const env = { STARLING_CONFIG: join(cli.folder, "none.json") };
    await fc.assert(
      fc.asyncProperty(documents, async (document) => {
        const input = JSON.stringify(document);
        const offline = await cli.run("validate -f -", { input, env });
        const applied = await cli.run("apply -f - --dry-run=client", { input, env });
        const answer = await api.call("POST", "/v1/apply", { documents: [JSON.parse(input)], dryRun: true });
        if (answer.status === 200) {
          expect(offline).toMatchObject({ code: 0, out: expect.stringMatching(/^1 document is valid\n/) });
          expect(applied.code).toBe(0);
          return;
        }
        expect(answer.status).toBe(422);
        expect(offline.code).toBe(2);
        expect(offline.err).toBe(applied.err);
        const said = offline.err.trimEnd().split("\n").slice(0, -2);
        const problems: readonly { field: string; message: string }[] = answer.body.problems;
        const described = problems.map(({ field, message }) => escaped(`${field}${field === "" ? "" : " "}${message}`));
        // The file, the line and the object precede each problem.
        expect(said.map((line, index) => line.slice(-(described[index]?.length ?? 0)))).toEqual(described);
        expect(offline.err).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
      }),
      { numRuns: 400, seed: steadySeed(7) },
    );
  }, 120_000);

  test("the namespace of a document comes from -n, then from the context, and is otherwise missing", async () => {
    const input = fleet;
    for (const verb of ["validate -f -", "apply -f - --dry-run=client"]) {
      expect((await cli.run(verb, { input })).code).toBe(0);
      expect((await cli.run(`${verb} -n team`, { input })).code).toBe(0);
      const missing = await cli.run(verb, { input, env: { STARLING_CONFIG: "/nowhere/config.json" } });
      expect(missing.code).toBe(2);
      expect(missing.err).toContain(
        "stdin:3: Source/app: metadata.namespace is required: name one here, with -n, or in the context\n",
      );
      const other = await cli.run(`${verb} -n team`, {
        input: input.replaceAll("name: app\n", "name: app\n  namespace: shop\n"),
      });
      expect(other.code).toBe(2);
      expect(other.err).toMatch(
        /^stdin:5: Source\/app: metadata\.namespace is shop, but -n is team; omit -n, or change one of them\n/,
      );
    }
  });

  test("the problems of all files are reported at once", async () => {
    cli.write("a.yaml", "kind: [\n");
    cli.write("b.yaml", "a: 1\na: 2\n");
    cli.write("c.yaml", fleet.replace("clusters: {all: true}", "clusters: {}"));
    cli.write("d.yaml", fleet);
    for (const verb of ["validate", "apply"]) {
      const ran = await cli.run(`${verb} -f a.yaml -f b.yaml -f c.yaml -f d.yaml`);
      expect(ran).toMatchObject({ code: 2, out: "" });
      expect(ran.err.split("\n").map((line) => line.split(": ").slice(0, 2).join(": "))).toEqual([
        expect.stringMatching(/^a\.yaml:\d+:\d+: /),
        expect.stringMatching(/^b\.yaml:2:1: duplicate key/),
        "c.yaml:19: SyncGroup/shop",
        "d.yaml:4: Source/app",
        "d.yaml:11: Cluster/c1",
        "error: 5 problems in 8 documents; nothing was applied",
        "  next: correct the lines above, then",
        "",
      ]);
    }
    expect(cli.table.all()).toEqual([]);
  });

  test("the first hundred of many problems are reported, and the file is read once", async () => {
    const one = fleet.split("---")[1] ?? "";
    const input = Array.from({ length: 5000 }, () => one.replace("env: prod", "env: '!'")).join("---");
    const ran = await cli.run("validate -f -", { input });
    const lines = ran.err.trimEnd().split("\n");
    expect(lines).toHaveLength(103);
    expect(lines[99]).toMatch(/^stdin:\d+: Cluster\/c1: metadata\.labels\.env must be a Kubernetes label value/);
    expect(lines[100]).toBe("and 4900 more");
    expect(lines[101]).toBe("error: 5000 problems in 5000 documents; nothing was applied");
  });

  test("validate warns of a secret that no installation reads, and a plan with it asks the installation and refuses it", async () => {
    const source = (secret: string) =>
      JSON.stringify({
        ...right.Source,
        metadata,
        spec: { git: { url: "https://github.com/acme/app", credentials: { secret, kind: "basic" } } },
      });
    const warned = await cli.run("validate -f -", { input: source("registry") });
    expect(warned).toMatchObject({ code: 0, out: "1 document is valid\n" });
    expect(warned.err).toBe(
      `warning: source/${metadata.name}: spec.git.credentials.secret is not below INSTALLATION/git/, and Starling reads no other secret for a Source; write the name of one there, such as starling/git/shop\n`,
    );
    expect((await cli.run("validate -f -", { input: source("starling/git/a") })).err).toBe("");

    for (const command of ["plan app -f - -n payments", "apply -f - -n payments"]) {
      const refused = await cli.run(command, {
        input: source("other/git/a").replace(`"${metadata.namespace}"`, '"payments"'),
      });
      expect(refused.code).toBe(2);
      expect(refused.err).toMatch(
        /^stdin:1: Source\/\w+: spec\.git\.credentials\.secret is not below starling\/git\//m,
      );
      expect(refused.err).toContain("nothing was applied");
    }
  });

  test("validate warns of a Window that never opens, as text and as data, and calls the document valid", async () => {
    const input = `apiVersion: starling.dev/v1alpha1
kind: Window
metadata: { name: past }
spec: { clusters: { all: true }, allow: [{ start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" }] }
`;
    const warning =
      "window/past: spec.allow has only times that are over, the last since 2020-01-02T00:00:00Z: the Window never opens, and nothing that it selects changes; allow a later time, or delete it";
    expect(await cli.run("validate -f -", { input })).toEqual({
      code: 0,
      out: "1 document is valid\n\nWindow past opens:\n  never\n",
      err: `warning: ${warning}\n`,
    });
    const data = await cli.run("validate -f - -o json", { input });
    expect(JSON.parse(data.out)).toEqual({ valid: true, documents: 1, warnings: [warning] });
    const applied = await cli.run("apply -f -", { input });
    expect(applied.code).toBe(0);
    expect(applied.err).toContain(`warning: ${warning}\n`);
  });
});
