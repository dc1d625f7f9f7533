import { expect, test } from "vitest";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";

test("the key of a revision has its Source, its start and the digest of its artifact", () => {
  const artifact = {
    revision: "main@sha1:aaa",
    digest: "sha256:aa",
    sizeBytes: 10,
    files: 1,
    storedAt: "2026-11-21T08:00:00.000Z",
    subject: "Add the shop",
    author: "maintainers",
  };
  expect(revisionRow({ namespace: "shop", name: "app" }, artifact, "2026-11-21T09:00:00.000Z")).toEqual({
    pk: "REV#shop#app",
    sk: "2026-11-21T09:00:00.000Z#sha256:aa",
    expiresAt: Date.parse("2026-12-21T09:00:00.000Z") / 1000,
    type: "Revision",
    schema: 2,
    version: 1,
    at: "2026-11-21T09:00:00.000Z",
    artifact,
  });
});
