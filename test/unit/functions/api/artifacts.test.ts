/** The artifacts of a Source: by digest, commit, version and time. */
import { beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import {
  type Answer,
  type ApiFixture,
  apiFixture,
  httpEvent,
  principal,
  source,
} from "#test/unit/functions/api/api-fixture.ts";

const name = { namespace: "payments", name: "app" };
const path = "/v1/sources/payments/app/artifacts";
const commit = (digit: number) => `${digit}${"0123456789abcdef".repeat(3)}`.slice(0, 40);
const digest = (digit: number) => `sha256:${String(digit).repeat(64)}`;
const at = (minute: number) => `2026-11-20T06:0${minute}:00.000Z`;

function artifact(digit: number, revision = `main@sha1:${commit(digit)}`): Artifact {
  return {
    revision,
    digest: digest(digit),
    sizeBytes: 100 + digit,
    files: digit,
    storedAt: "2026-11-20T07:00:00.000Z",
    subject: `change ${digit}`,
    author: "Ana <ana@acme.io>",
    origin: "https://github.com/acme/app",
  };
}

let api: ApiFixture;

async function had(one: Artifact, since: string): Promise<void> {
  await api.table.write([{ put: revisionRow(name, one, since) }]);
}

async function has(one: Artifact): Promise<void> {
  const row = await api.table.get(keys.object(name.namespace, "Source", name.name));
  if (row === undefined) throw new Error("no Source");
  const next: SourceRow = { ...row, status: { ...row.status, artifact: one }, version: row.version + 1 };
  await api.table.write([{ put: next, when: { version: row.version } }]);
}

const get = (reference: string) => api.call("GET", `${path}/${encodeURIComponent(reference)}`);

/** The Source had 1, 2, 1 and 3, each since a minute. */
beforeEach(async () => {
  api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [source("app")] });
  await had(artifact(1), at(1));
  await had(artifact(2), at(2));
  await had(artifact(1), at(3));
  await had(artifact(3, "1.4.0@sha256:abc"), at(4));
  await has(artifact(3, "1.4.0@sha256:abc"));
});

test("all artifacts are listed, the newest first, page by page, without a URL [source.reading.list]", async () => {
  const { status, body } = await api.call("GET", `${path}?limit=3`);
  expect(status).toBe(200);
  expect(body.kind).toBe("ArtifactList");
  expect(body.items.map((item: Answer) => [item.digest, item.at, item.present])).toEqual([
    [digest(3), at(4), true],
    [digest(1), at(3), false],
    [digest(2), at(2), false],
  ]);
  expect(body.items[2]).toEqual({
    revision: `main@sha1:${commit(2)}`,
    digest: digest(2),
    at: at(2),
    present: false,
    sizeBytes: 102,
    files: 2,
    storedAt: "2026-11-20T07:00:00.000Z",
    key: `artifacts/${"2".repeat(64)}.tar.gz`,
    origin: "https://github.com/acme/app",
    title: "change 2",
    author: "Ana <ana@acme.io>",
  });
  const rest = await api.call("GET", `${path}?limit=3&continue=${encodeURIComponent(body.metadata.continue)}`);
  expect(rest.body.items.map((item: Answer) => item.at)).toEqual([at(1)]);
});

describe("one artifact", () => {
  test.each([
    ["a digest", digest(2), 2],
    ["a commit", commit(2), 2],
    ["the beginning of a commit", commit(2).slice(0, 7), 2],
    ["a whole revision", `main@sha1:${commit(1)}`, 1],
    ["a branch, which means its newest", "main", 1],
    ["a version", "1.4.0", 3],
    ["a time between two", "2026-11-20T06:02:59Z", 2],
    ["the time since which it was present", at(2), 2],
    ["a time in another zone", "2026-11-20T08:03:30+02:00", 1],
    ["the present time", "2026-11-20T08:00:00Z", 3],
  ])("an artifact is named by %s [source.reading.named]", async (_, reference, digit) => {
    expect(await get(reference)).toMatchObject({ status: 200, body: { digest: digest(digit) } });
    const listed = await api.call("GET", `${path}?reference=${encodeURIComponent(reference)}`);
    expect(listed.body.items).toMatchObject([{ digest: digest(digit) }]);
    expect(listed.body.items[0]).not.toHaveProperty("url");
  });

  test("an artifact has a URL for five minutes, its digest in a header, and its reader in the log [source.reading.url]", async () => {
    const { headers, body } = await api.answer(httpEvent("GET", `${path}/${commit(2)}`));
    expect(headers["starling-digest"]).toBe(digest(2));
    expect(JSON.parse(body)).toMatchObject({
      url: expect.stringContaining(`artifacts/${"2".repeat(64)}.tar.gz`),
      urlExpiresAt: "2026-11-20T08:05:00.000Z",
    });
    expect(api.log).toContainEqual(
      expect.objectContaining({ message: "contents handed out", principal, artifacts: [digest(2)], name: "app" }),
    );
  });

  test("a version that was pushed and is not stored any more is refused with when that was, and the remedy", async () => {
    const row = await api.table.get(keys.object(name.namespace, "Source", name.name));
    if (row === undefined) throw new Error("no Source");
    const pushed = {
      version: "0.9.0",
      sha256: "9".repeat(64),
      id: "u",
      by: "ci",
      at: "2026-09-01T06:00:00.000Z",
      number: 1,
    };
    const operations = { ...row.operations, uploads: [pushed] };
    const next: SourceRow = { ...row, operations, version: row.version + 1 };
    await api.table.write([{ put: next, when: { version: row.version } }]);
    for (const reference of ["0.9.0", `0.9.0@sha256:${"9".repeat(64)}`]) {
      const { status, body } = await get(reference);
      expect({ status, message: body.message }).toEqual({
        status: 404,
        message: `version 0.9.0 was pushed to Source payments/app at 2026-09-01T06:00:00.000Z, and no artifact of it is stored; push the same files as another version; its revisions are known since ${at(1)}, and older ones are forgotten`,
      });
    }
  });

  test.each([
    [
      "a commit that it never had [source.reading.unknown]",
      "f".repeat(40),
      404,
      `had no revision ${"f".repeat(40)}; its revisions are known since ${at(1)}, and older ones are forgotten`,
    ],
    ["a time before its history", "2026-11-20T06:00:59Z", 404, `is not known: its revisions are known since ${at(1)}`],
    ["a time in the future", "2026-11-20T08:00:01Z", 400, "is in the future; it is 2026-11-20T08:00:00.000Z now"],
  ])("%s is refused", async (_, reference, status, says) => {
    const answer = await get(reference);
    expect(answer).toMatchObject({ status, body: { message: expect.stringContaining(says) } });
    expect(answer.body).not.toHaveProperty("url");
  });

  test("the beginning of several commits is refused, and the message names them [source.reading.unknown]", async () => {
    const twin = `${commit(2).slice(0, 8)}${"e".repeat(32)}`;
    await had(artifact(5, `main@sha1:${twin}`), at(5));
    expect(await get(commit(2).slice(0, 8))).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining(`${twin} and of ${commit(2)}`) },
    });
  });

  test.each(["artifacts", "release/artifacts"])(
    "a reference %s is refused, because its path is that of the list for the policy of a viewer",
    async (reference) => {
      await had(artifact(6, `${reference}@sha1:${commit(6)}`), at(5));
      const answer = await get(reference);
      expect(answer).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("write the whole revision") },
      });
      expect(answer.body).not.toHaveProperty("url");
      expect(await get(`${reference}@sha1:${commit(6)}`)).toMatchObject({ status: 200, body: { digest: digest(6) } });
    },
  );

  test("a Source that has one artifact for longer than revisions are kept still has it", async () => {
    api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    expect(await get("2026-11-20T07:00:00Z")).toMatchObject({
      status: 404,
      body: { message: expect.stringContaining("it has none yet") },
    });
    await has(artifact(1));
    expect((await api.call("GET", path)).body.items).toMatchObject([{ digest: digest(1), present: true }]);
    expect(await get("2026-10-21T08:00:01Z")).toMatchObject({ status: 200, body: { digest: digest(1) } });
    expect(await get(commit(1))).toMatchObject({ status: 200 });
    expect(await get("2026-10-21T07:59:59Z")).toMatchObject({
      status: 404,
      body: { oldest: "2026-10-21T08:00:00.000Z" },
    });
  });

  test("a Source that does not exist is not found", async () => {
    const answer = await api.call("GET", "/v1/sources/payments/other/artifacts/main");
    expect(answer).toMatchObject({ status: 404, body: { message: "Source payments/other does not exist" } });
  });
});
