import { expect, test } from "vitest";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import type { Artifact, Operations, SourceStatus } from "#shared/fleet/rows/object-rows.ts";
import { staleSince } from "#shared/fleet/sources/stale-source.ts";

const polled = "2026-11-20T08:00:00.000Z";
const spec = sourceSpec.parse({ git: { url: "https://github.com/acme/app" }, interval: "10m" });
const artifact = { revision: "main@sha1:1", digest: "sha256:1", storedAt: polled } as Artifact;
const suspended = { suspended: { by: "ana", at: polled, number: 1 } };

test.each<[string, string | undefined, Partial<SourceStatus>, Operations, string]>([
  ["was polled in time", undefined, { attemptedAt: polled, artifact }, {}, "2026-11-20T09:09:59.999Z"],
  ["was not polled for an hour", polled, { attemptedAt: polled, artifact }, {}, "2026-11-20T09:10:00.000Z"],
  ["is suspended", undefined, { attemptedAt: polled, artifact }, suspended, "2026-11-21T09:10:00.000Z"],
  ["has no artifact", undefined, { attemptedAt: polled }, {}, "2026-11-21T09:10:00.000Z"],
  ["was never polled", undefined, {}, {}, "2026-11-21T09:10:00.000Z"],
  [
    "cannot be polled",
    "2026-11-20T06:00:00.000Z",
    { attemptedAt: polled, artifact, staleSince: "2026-11-20T06:00:00.000Z" },
    {},
    polled,
  ],
  [
    "could not be polled before it was suspended",
    "2026-11-20T06:00:00.000Z",
    { attemptedAt: polled, artifact, staleSince: "2026-11-20T06:00:00.000Z" },
    suspended,
    "2026-11-21T09:10:00.000Z",
  ],
])("a Source that %s is stale since %s", (_, since, status, operations, now) => {
  expect(staleSince({ spec, operations, status: { conditions: [], ...status } }, new Date(now))).toBe(since);
});
