/** The remedy for a host that is not reached fits the network from which it was asked. */
import { describe, expect, test } from "vitest";
import { httpFromZone, readFromZone } from "#shared/adapters/net/read-from-zone.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { HttpRemote } from "#shared/ports.ts";

const host = "git.corp.example";
const socketError = (code: string) => Object.assign(new Error(`connect ${code}`), { code });
const unavailable = (cause: unknown, data = {}) =>
  new StarlingError("not fetched", { code: "UpstreamUnavailable", retry: "transient", cause, data });

const refusedIn = (network: "private" | undefined) =>
  new StarlingError("not fetched", { code: "AddressRefused", retry: "permanent", data: { host, network } });

const causes = {
  nameless: unavailable(socketError("ENOTFOUND")),
  "nameless for now": unavailable(socketError("EAI_AGAIN")),
  "without a route": unavailable(socketError("EHOSTUNREACH")),
  "without a route at any address": unavailable(
    new AggregateError([socketError("ENETUNREACH"), socketError("ETIMEDOUT")]),
  ),
  "without a route, behind another error": unavailable(new Error("fetch failed", { cause: socketError("ETIMEDOUT") })),
  silent: unavailable(undefined, { silentHost: host }),
  refused: refusedIn("private"),
  "refused whatever is allowed": refusedIn(undefined),
  listening: unavailable(socketError("ECONNREFUSED")),
  answering: new StarlingError("not fetched", { code: "GitNotFound", retry: "permanent" }),
} as const;

async function failureOf(error: Error, zone: string | undefined): Promise<unknown> {
  const http: HttpRemote = { ask: () => Promise.reject(error) };
  return httpFromZone(http, zone)
    .ask({ url: `https://${host}/`, maxBytes: 1 })
    .catch((thrown: unknown) => thrown);
}

const name =
  "zone spoke asks the resolver of its VPC: let that know the name, by a private hosted zone or a rule of Route 53 Resolver";
const way =
  "it is asked from zone spoke: look for a route from the subnets of the zone, and whether its security groups let the request out";
const zoneOnly = "a host in a private network is read from a zone only (settings resolveZone and gitAllow)";

describe("a host that is not reached", () => {
  test.each([
    ["nameless", name, zoneOnly],
    ["nameless for now", name, zoneOnly],
    ["without a route", way, zoneOnly],
    ["without a route at any address", way, zoneOnly],
    ["without a route, behind another error", way, zoneOnly],
    ["silent", way, zoneOnly],
    ["refused", "the setting is gitAllow", zoneOnly],
    ["refused whatever is allowed", undefined, undefined],
    ["listening", undefined, undefined],
    ["answering", undefined, undefined],
  ] as const)("%s", async (kind, inZone, inHome) => {
    const withRemedy = (remedy: string | undefined) =>
      remedy === undefined ? "not fetched" : `not fetched; ${remedy}`;
    expect(errorMessage(await failureOf(causes[kind], "spoke"))).toBe(withRemedy(inZone));
    expect(errorMessage(await failureOf(causes[kind], "home"))).toBe(withRemedy(inHome));
    expect(await failureOf(causes[kind], undefined)).toBe(causes[kind]);
  });

  test("the code, the data and the cause stay, because others decide by them", async () => {
    const { code, retry, data, cause } = causes.silent;
    expect(await failureOf(causes.silent, "spoke")).toMatchObject({ code, retry, data });
    expect(await failureOf(causes.nameless, "spoke")).toMatchObject({ cause: causes.nameless.cause });
    expect(cause).toBeUndefined();
  });

  test("the remedy is added to every kind of question", async () => {
    const fails = () => Promise.reject(causes.nameless);
    const { git, http, buckets } = readFromZone(
      { git: { listRefs: fails, fetchTree: fails }, http: { ask: fails }, buckets: { list: fails, get: fails } },
      "spoke",
    );
    const place = { bucket: "b" };
    const timeLeftMs = () => 1;
    const asked = [
      git.listRefs({ url: "u" }, []),
      git.fetchTree({ url: "u" }, { oid: "o", paths: [] }),
      http.ask({ url: "u", maxBytes: 1 }),
      buckets.list(place, { prefix: "", timeLeftMs }),
      buckets.get(place, { key: "k", etag: "e", size: 1, modifiedAt: undefined }, timeLeftMs),
    ];
    for (const outcome of await Promise.allSettled(asked))
      expect(outcome).toMatchObject({ status: "rejected", reason: { message: `not fetched; ${name}` } });
  });
});
