import { expect, test } from "vitest";
import { limitedUntil } from "#shared/source/request-limit.ts";

const now = new Date("2026-03-01T10:00:00.000Z");
const reset = String(Math.floor(now.getTime() / 1000) + 600);

test.each<[string, number, Record<string, string>, number | undefined]>([
  ["429 with seconds", 429, { "retry-after": "120" }, 120],
  ["429 with a date", 429, { "retry-after": "Sun, 01 Mar 2026 10:05:00 GMT" }, 300],
  ["429 alone", 429, {}, 60],
  ["429 with a text that is no time", 429, { "retry-after": "soon" }, 60],
  ["429 that demands nothing", 429, { "retry-after": "0" }, 1],
  ["429 that demands less than nothing", 429, { "retry-after": "-5" }, 1],
  ["429 that demands a year", 429, { "retry-after": "31536000" }, 3600],
  ["GitHub's limit of an hour", 403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset }, 600],
  ["GitHub's second limit", 403, { "retry-after": "30" }, 30],
  ["GitLab's limit", 429, { "ratelimit-remaining": "0", "ratelimit-reset": reset }, 600],
  ["a server in maintenance", 503, { "retry-after": "45" }, 45],
  ["a server without a time", 503, {}, undefined],
  ["a refusal", 403, {}, undefined],
  [
    "a refusal beside a limit that is not reached",
    403,
    { "x-ratelimit-remaining": "4999", "x-ratelimit-reset": reset },
    undefined,
  ],
  ["success with the last request", 200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset }, undefined],
])("%s is a wait of the right length [source.limits.wait]", (_, status, headers, seconds) => {
  const until = limitedUntil({ status, headers }, now);
  expect(until === undefined ? undefined : (until.getTime() - now.getTime()) / 1000).toBe(seconds);
});
