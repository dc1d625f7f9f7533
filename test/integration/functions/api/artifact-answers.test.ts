/** The answers of the API about artifacts, over HTTP, fit the JSON Schemas that the docs publish. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { defined } from "#shared/base/defined.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const source = { namespace: "payments", name: "app" };
const path = "/v1/sources/payments/app/artifacts";
let cli: CliFixture;
let api: ApiSession;

/** The schema of a page; a strict one refuses members that the page does not name. */
function validatorOf(name: string, strictness: "open" | "strict") {
  const text = readFileSync(`docs/api/${name}.schema.json`, "utf8");
  const closed = (_key: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && "properties" in value && "type" in value
      ? { ...value, additionalProperties: false }
      : value;
  const ajv = new Ajv2020({ allErrors: true, strict: true });
  formats.default(ajv);
  const validate = ajv.compile(JSON.parse(text, strictness === "strict" ? closed : undefined));
  return (answer: unknown) =>
    validate(answer) ? [] : (validate.errors ?? []).map((one) => `${one.instancePath} ${one.message}`);
}

const list = validatorOf("artifact-list", "strict");
const one = validatorOf("artifact", "strict");

const content = (text: string) => [{ path: "a.yaml", executable: false, content: Buffer.from(text) }];

async function stored(digit: string, more: Partial<Artifact> = {}): Promise<Artifact> {
  const files = content(digit);
  const [digest, archive] = [treeDigest(files), await packArtifact(files)];
  await cli.blobs.overwrite(blobKeys.artifact(digest), archive);
  const revision = `main@sha1:${digit.repeat(40)}`;
  const storedAt = "2026-11-20T06:00:00.000Z";
  return { revision, digest, sizeBytes: archive.length, files: 1, storedAt, subject: digit, author: "Ana", ...more };
}

beforeAll(async () => {
  cli = await startCliFixture();
  cli.write("fleet.yaml", fleet);
  expect(await cli.run("apply -f fleet.yaml -q --yes")).toMatchObject({ code: 0 });
  const credentials = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
  api = openApiSession({ endpoint: cli.url, region: "us-east-1", credentials });
  const signature = { object: "commit 1f3a", key: "SHA256:abc", owner: "ana@acme.io" };
  const part = { source: "base", fromPath: "deploy", revision: "v1@sha1:9", digest: `sha256:${"9".repeat(64)}` };
  const had = [
    await stored("a"),
    await stored("b", { origin: "https://github.com/acme/app", committedAt: "2026-11-20T05:00:00.000Z" }),
    await stored("c", {
      verified: {
        mode: "HEAD",
        signatures: [signature, { object: "tag v1", key: "AB12" }],
        at: "2026-11-20T06:00:00.000Z",
      },
      included: [part, { ...part, source: "values", toPath: "other" }],
      charts: ["."],
      madeFrom: "x",
      movedFrom: "y",
    }),
  ];
  for (const [index, artifact] of had.entries()) {
    await cli.table.write([{ put: revisionRow(source, artifact, `2026-11-2${index}T06:00:00.000Z`) }]);
  }
  const row = await cli.table.get(keys.object("payments", "Source", "app"));
  if (row === undefined) throw new Error("no Source app");
  const withArtifact: SourceRow = {
    ...row,
    status: { ...row.status, ...defined({ artifact: had[2] }) },
    version: row.version + 1,
  };
  await cli.table.write([{ put: withArtifact, when: { version: row.version } }]);
  const pin: PinRow = {
    ...keys.pin(source, "d".repeat(40)),
    type: "Pin",
    schema: rowSchema,
    version: 1,
    artifact: await stored("d"),
  };
  await cli.table.write([{ put: pin }]);
});
afterAll(() => cli.stop());

test("a list, each of its pages and the one that a reference names fit the schema of the list [source.reading.schema]", async () => {
  const all = await api.call<{ readonly items: readonly unknown[] }>("GET", path);
  expect(all.items).toHaveLength(3);
  expect(list(all)).toEqual([]);
  let next: string | undefined;
  let pages = 0;
  do {
    const asked = `${path}?limit=1${next === undefined ? "" : `&continue=${encodeURIComponent(next)}`}`;
    const page = await api.call<{ readonly metadata: { readonly continue?: string } }>("GET", asked);
    expect(list(page)).toEqual([]);
    next = page.metadata.continue;
    pages++;
  } while (next !== undefined && pages < 10);
  expect(pages).toBeGreaterThan(2);
  expect(list(await api.call("GET", `${path}?reference=${"d".repeat(40)}`))).toEqual([]);
});

test.each(["a", "b", "c", "d"])(
  "the artifact %s fits the schema of one artifact [source.reading.schema]",
  async (digit) => {
    const answer = await api.call<Readonly<Record<string, unknown>>>("GET", `${path}/${digit.repeat(40)}`);
    expect(one(answer)).toEqual([]);
    expect(answer).toMatchObject({ present: digit === "c", revision: `main@sha1:${digit.repeat(40)}` });
    expect(Object.keys(answer).includes("included")).toBe(digit === "c");
  },
);

test("the schema refuses an answer without a digest, and minds no member of a later version", async () => {
  const open = validatorOf("artifact", "open");
  const { digest: _digest, ...rest } = await api.call<Readonly<Record<string, unknown>>>("GET", `${path}/main`);
  expect(open({ ...rest, digest: "sha256:x" })).toEqual([expect.stringContaining("/digest must match pattern")]);
  expect(open(rest)).toEqual([expect.stringContaining("must have required property 'digest'")]);
  expect(open({ ...rest, digest: _digest, laterMember: 1 })).toEqual([]);
  expect(one({ ...rest, digest: _digest, laterMember: 1 })).toEqual([expect.stringContaining("additional properties")]);
});
