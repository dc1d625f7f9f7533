import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type HttpFronts, startHttpFronts } from "#test/support/http-fronts.ts";
import { cluster, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";

/** The longest message that people should read. */
const shortAnswer = 100_000;

let fronts: HttpFronts;
beforeAll(async () => {
  fronts = await startHttpFronts();
});
afterAll(() => fronts.stop());

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

function body(...documents: readonly unknown[]): string {
  return JSON.stringify({ documents });
}

function annotated(annotations: Readonly<Record<string, string>>) {
  const document = source("big");
  return { ...document, metadata: { ...document.metadata, annotations } };
}

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly problems?: readonly { readonly field: string; readonly message: string }[];
}

interface AnsweredList {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

interface Case {
  readonly name: string;
  readonly body: string;
  readonly status: number;
  readonly code: string;
  /** A text in the message, or in the message of the problem of `field`. */
  readonly says: RegExp;
  readonly field?: string;
}

const x = (length: number) => "x".repeat(length);

const cases: readonly Case[] = [
  {
    name: "a list of 490,000 numbers instead of documents",
    body: `{"documents":[${"0,".repeat(489_999)}0]}`,
    status: 400,
    code: "BadRequest",
    says: /documents: must have at most 1000 items/,
  },
  {
    name: "a list of a thousand numbers instead of documents",
    body: body(...Array.from({ length: 1000 }, () => 0)),
    status: 422,
    code: "Invalid",
    says: /^1000 problems in 1000 documents \(the first 100 are listed\); nothing was applied$/,
  },
  {
    name: "a document with 80,000 unknown fields",
    body: `{"documents":[{"apiVersion":"starling.dev/v1alpha1","kind":"Source","metadata":{},"spec":{${Array.from({ length: 80_000 }, (_, index) => `"k${index}":1`).join(",")}}}]}`,
    status: 422,
    code: "Invalid",
    says: /problems in 1 document \(the first 100 are listed\)/,
  },
  {
    name: "an annotation of 450 KB",
    body: body(annotated({ note: x(450_000) })),
    status: 422,
    code: "Invalid",
    says: /must have at most 262144 bytes together, keys and values/,
    field: "metadata.annotations",
  },
  {
    name: "a document that is too large for a row",
    body: body(
      cluster("wide", Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`l${index}`, x(60)]))),
      syncGroup(
        "wide",
        Array.from({ length: 20 }, (_, index) => ({ name: `t${index}`, source: "app", path: x(1000) })),
      ),
      { ...source("wide"), metadata: { ...annotated({ a: x(262_143) }).metadata, name: "wide" }, spec: wideSpec() },
    ),
    status: 422,
    code: "Invalid",
    says: /has \d+ bytes as JSON; expected at most 300000: shorten its annotations, values or lists of names/,
    field: "",
  },
  {
    name: "JSON deeper than the stack",
    body: `{"documents":${nested(400_000)}}`,
    status: 400,
    code: "BadRequest",
    says: /^documents\.0\.0\.0 is nested deeper than 200 levels; remove it$/,
  },
  {
    name: "deep JSON with an integer of 64 bits",
    body: `{"documents":[9007199254740993${`,${nested(100_000)}`}]}`,
    status: 400,
    code: "BadRequest",
    says: /^documents\.1\.0\.0 is nested deeper than 200 levels; remove it$/,
  },
  {
    name: "a document that is nested more deeply than a file may be",
    body: `{"documents":[{"apiVersion":"starling.dev/v1alpha1","kind":"Source","spec":${nested(150)}}]}`,
    status: 422,
    code: "Invalid",
    says: /is nested deeper than 100 levels; remove it/,
    field: "spec[0][0]",
  },
  {
    name: "an integer of 64 bits where a text belongs",
    body: JSON.stringify({ documents: [annotated({ a: "AT" })] }).replace('"AT"', "[12345678901234567890]"),
    status: 422,
    code: "Invalid",
    says: /must be a text \(got \[12345678901234567890\]\)/,
    field: "metadata.annotations.a",
  },
  {
    name: "a number that is too large for a double",
    body: JSON.stringify({ documents: [annotated({ a: "AT" })] }).replace('"AT"', "1e400"),
    status: 422,
    code: "Invalid",
    says: /must be a text \(got Infinity\)/,
    field: "metadata.annotations.a",
  },
  {
    name: "a label named __proto__",
    body: JSON.stringify({ documents: [annotated({ AT: "x" })] }).replace('"AT"', '"__proto__"'),
    status: 422,
    code: "Invalid",
    says: /is a name that no field, label or value can have; remove it/,
    field: "metadata.annotations.__proto__",
  },
  {
    name: "a name that is displayed as another name",
    body: body({ ...source("app"), metadata: { name: "ap\u202ep", namespace: "payments" } }),
    status: 422,
    code: "Invalid",
    says: /must be 1 to 63 characters .*\(got "ap\\u202ep"\)/,
    field: "metadata.name",
  },
  {
    name: "a field with a name of a megabyte",
    body: `{"${x(900_000)}":1}`,
    status: 400,
    code: "BadRequest",
    says: /documents: .*; x{77}\.\.\.: not known here; leave it out/,
  },
  {
    name: "a kind of a megabyte",
    body: body({ ...source("app"), kind: x(900_000) }),
    status: 422,
    code: "Invalid",
    says: /is "x{76}\.\.\.; expected one of Source, Receiver, ClusterDiscovery, Cluster, ClusterValues, Window, SyncGroup, Sync/,
    field: "kind",
  },
  {
    name: "a template of 450,000 braces",
    body: body(syncGroup("braces", [{ name: "web", source: "app", path: "{{".repeat(225_000) }])),
    status: 422,
    code: "Invalid",
    says: /must have at most 1024 characters/,
    field: "spec.templates[0].path",
  },
  {
    name: "a URL of 900,000 slashes",
    body: body({ ...source("app"), spec: { git: { url: `https://h.example/${"/".repeat(900_000)}` } } }),
    status: 422,
    code: "Invalid",
    says: /must have at most 2048 characters/,
    field: "spec.git.url",
  },
  {
    name: "a body that is not JSON",
    body: `{"documents": ${x(500_000)}`,
    status: 400,
    code: "BadRequest",
    says: /^the body is not JSON/,
  },
  {
    name: "a body that is too large",
    body: body(annotated({ a: x(1_000_000) })),
    status: 413,
    code: "BodyTooLarge",
    says: /^the body has 10\d{5} bytes; at most 1000000: apply in several parts$/,
  },
];

function wideSpec() {
  const paths = Array.from({ length: 100 }, (_, index) => `${x(990)}${index}`);
  return { git: { url: "https://github.com/acme/app" }, paths };
}

describe("a refusal of the API", () => {
  test.each(cases)(
    "$name is refused in few words, before the table is read",
    async ({ body: sent, status, code, says, field }) => {
      const before = fronts.proxy.calls();
      const answer = await fronts.ask("POST", "/v1/apply", sent);
      const refused = JSON.parse(answer.text) as Refusal;
      expect({ status: answer.status, code: refused.code }).toEqual({ status, code });
      expect(answer.text.length).toBeLessThan(shortAnswer);
      const problem = refused.problems?.find((candidate) => candidate.field === field);
      expect(field === undefined ? refused.message : problem?.message).toMatch(says);
      expect(fronts.proxy.calls()).toEqual(before);
    },
  );

  test.each([
    ["a selector of commas", `labelSelector=${",".repeat(9000)}`, /labelSelector: "" is no label requirement/],
    ["a state that is no word", `state=${x(5000)}`, /^state is "x{77}\.\.\."; expected a word/],
    ["a limit that is no number", `limit=${x(5000)}`, /^limit is "x{77}\.\.\."; expected/],
    ["a token of another list", "continue=eyJzdWJqZWN0Ijo1fQ", /^continue is not a token of this list/],
  ])("%s is refused in few words", async (_name, query, says) => {
    const plural = query.startsWith("labelSelector") ? "clusters" : "syncs";
    const answer = await fronts.ask("GET", `/v1/${plural}?${query}`);
    expect(answer.status).toBe(400);
    expect((JSON.parse(answer.text) as Refusal).message).toMatch(says);
  });

  test("the largest allowed objects are written and read", async () => {
    const labels = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`l${index}.example/k`, x(63)]));
    const values = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`v${index}`, x(150)]));
    const wide = cluster("wide", labels);
    const documents = [
      { ...annotated({ a: x(262_143) }) },
      { ...wide, spec: { ...wide.spec, values } },
      sync("small", { cluster: "wide", source: "big" }),
    ];
    const answer = await fronts.ask("POST", "/v1/apply", body(...documents));
    expect(answer).toMatchObject({ status: 200 });
    expect(await fronts.table.get(keys.object("payments", "Source", "big"))).toMatchObject({ generation: 1 });
    const read = await fronts.ask("GET", "/v1/namespaces/payments/sources/big");
    expect(JSON.parse(read.text)).toMatchObject({ metadata: { annotations: { a: x(262_143) } } });
  });

  test("an object that is too large for a row together with its status is refused by name, and the row stays", async () => {
    const full = (note: string) => {
      const document = annotated({ note });
      return { ...document, metadata: { ...document.metadata, name: "full" } };
    };
    expect(await fronts.ask("POST", "/v1/apply", body(full("")))).toMatchObject({ status: 200 });
    const key = keys.object("payments", "Source", "full");
    await fronts.table.update({
      update: key,
      set: { status: { conditions: [], filler: x(200_000) } },
      add: { version: 1 },
    });
    const before = await fronts.table.get(key);
    const answer = await fronts.ask("POST", "/v1/apply", body(full(x(250_000))));
    expect({ status: answer.status, ...JSON.parse(answer.text) }).toMatchObject({
      status: 422,
      code: "RowTooLarge",
      message:
        "Source payments/full and its status are larger than a row may be: shorten its annotations, values or lists of names",
    });
    expect(await fronts.table.get(key)).toEqual(before);
  });

  test.each([
    ["of text", "x", 262_000],
    ["of quotes, which JSON writes with two characters, and the answer of the function with four", '"', 140_000],
    ["of characters that JSON writes with six characters", "\u0001", 45_000],
  ])(
    "a list of objects that is too large for an answer is returned in parts: objects %s",
    async (_what, character, count) => {
      const namespace = `large-${character.charCodeAt(0)}`;
      const names = Array.from({ length: 24 }, (_, index) => `big-${String(index).padStart(2, "0")}`);
      for (let start = 0; start < names.length; start += 3) {
        const few = names.slice(start, start + 3).map((name) => {
          const document = annotated({ a: character.repeat(count) });
          return { ...document, metadata: { ...document.metadata, namespace, name } };
        });
        expect(await fronts.ask("POST", "/v1/apply", body(...few))).toMatchObject({ status: 200 });
      }
      const listed: string[] = [];
      let answers = 0;
      let after = "";
      do {
        const answer = await fronts.ask("GET", `/v1/namespaces/${namespace}/sources${after}`);
        expect(answer).toMatchObject({ status: 200 });
        const { items, metadata } = JSON.parse(answer.text) as AnsweredList;
        answers += 1;
        listed.push(...items.map((item) => item.metadata.name));
        after = metadata.continue === undefined ? "" : `?continue=${metadata.continue}`;
      } while (after !== "");
      expect(listed).toEqual(names);
      expect(answers).toBeGreaterThan(1);
      expect(answers).toBeLessThan(5);
    },
  );

  test.each(["sources", "syncgroups", "syncs", "clusters"])(
    "%s of other teams are listed, whatever one team wrote",
    async (plural) => {
      const documents = {
        sources: source("large"),
        syncgroups: syncGroup("large", [{ name: "t", source: "app" }]),
        syncs: sync("large", { cluster: "c1", source: "app" }),
        clusters: cluster("large"),
      };
      const document = documents[plural as keyof typeof documents];
      const metadata = { ...document.metadata, ...(plural === "clusters" ? {} : { namespace: "hostile" }) };
      const named = (name: string, annotations: Readonly<Record<string, string>>) =>
        body({ ...document, metadata: { ...metadata, name, annotations } });
      for (let index = 0; index < 30; index++) {
        const answer = await fronts.ask("POST", "/v1/apply", named(`l${index}`, { a: x(262_000) }));
        expect(answer).toMatchObject({ status: 200 });
      }
      expect(await fronts.ask("POST", "/v1/apply", named("last", {}))).toMatchObject({ status: 200 });
      const answer = await fronts.ask("GET", `/v1/${plural}?limit=1000`);
      expect(answer).toMatchObject({ status: 200 });
      expect((JSON.parse(answer.text) as AnsweredList).metadata.continue).toEqual(expect.any(String));
    },
  );
});

describe("a hostile push to the webhook", () => {
  const repository = (url: string) => JSON.stringify({ ref: "refs/heads/main", repository: { clone_url: url } });

  test.each([
    ["a URL of 900,000 slashes", repository(`https://h.example/a${"/".repeat(900_000)}b`), 400],
    ["a URL that is too long for a key", repository(`https://h.example/${"é".repeat(1500)}`), 202],
    ["a reference of a megabyte", JSON.stringify({ ref: x(900_000), repository: {} }), 400],
    ["a default branch of a megabyte", JSON.stringify({ ref: "a", repository: { default_branch: x(900_000) } }), 400],
    ["JSON deeper than the stack", `{"ref":"a","repository":{},"more":${nested(400_000)}}`, 202],
    ["a text that is not JSON", "{".repeat(900_000), 400],
  ])("%s is answered in few words, logs no error and sends no message", async (_name, sent, status) => {
    const before = fronts.log.length;
    fronts.sender.take();
    const answer = await fronts.push(sent);
    expect(answer.status).toBe(status);
    expect(answer.text.length).toBeLessThan(200);
    const form = await fronts.push(
      `payload=${encodeURIComponent(sent.slice(0, 150_000))}`,
      "application/x-www-form-urlencoded",
    );
    expect(form.status).toBeLessThan(500);
    expect(fronts.log.slice(before).filter((line) => line.message !== "push received")).toEqual([]);
    expect(fronts.sender.take()).toEqual([]);
  });
});
