/** Private git servers, and private issuers of tokens, are asked from the network of the zone in the setting `resolveZone`, as far as `gitAllow` goes. */
import { beforeAll, describe, expect, test } from "vitest";
import { lackOfNetworks, readInNetwork } from "#test/support/private-network/read-in-network.ts";
import type { ReadNetwork } from "#test/support/private-network/sources-program.ts";

const zones = JSON.stringify([
  { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] },
]);
/** The addresses of a cloud's metadata are never asked, and may be in the list. */
const settings = { zones, gitAllow: "10.20.0.0/16,169.254.169.254,fd00:ec2::254" };
/** The addresses are those of the test's own network, which leads nowhere else. */
const internet = { "git.public.example": "44.0.0.10" };
const ofZone = {
  ...internet,
  "git.corp.example": "10.20.0.5",
  "git.other.example": "10.30.0.5",
  "sso.corp.example": "10.20.0.6",
  "login.corp.example": "10.20.0.6",
  "id.corp.example": "10.20.0.6",
  "sso.other.example": "10.30.0.6",
  "metadata.corp.example": "169.254.169.254",
  "metadata6.corp.example": "fd00:ec2::254",
  "own.corp.example": "127.0.0.1",
  "own6.corp.example": "::1",
};
const sources = {
  public: "git.public.example",
  private: "git.corp.example",
  "not-allowed": "git.other.example",
  nameless: "git.gone.example",
  routeless: "10.20.0.99",
};
const forbidden = {
  metadata: { issuer: "metadata.corp.example" },
  "metadata-literal": { issuer: "169.254.169.254" },
  metadata6: { issuer: "metadata6.corp.example" },
  "metadata6-literal": { issuer: "[fd00:ec2::254]" },
  own: { issuer: "own.corp.example" },
  "own-literal": { issuer: "127.0.0.1" },
  own6: { issuer: "own6.corp.example" },
  "own6-literal": { issuer: "[::1]" },
  "keys-in-metadata": { issuer: "login.corp.example", keys: "metadata.corp.example" },
  "keys-on-own": { issuer: "id.corp.example", keys: "127.0.0.1" },
};
const issuers = {
  private: { issuer: "sso.corp.example" },
  "not-allowed": { issuer: "sso.other.example" },
  ...forbidden,
};
const lack = lackOfNetworks();

describe.skipIf(lack !== undefined)(
  `an installation in a network of its own${lack === undefined ? "" : ` (skipped: ${lack})`}`,
  () => {
    let inZone: ReadNetwork;
    let inHome: ReadNetwork;
    beforeAll(async () => {
      inZone = await readInNetwork({
        hosts: ofZone,
        sources,
        issuers,
        settings: { ...settings, resolveZone: "spoke" },
      });
      inHome = await readInNetwork({
        hosts: internet,
        sources,
        issuers: { private: { issuer: "sso.corp.example" } },
        settings,
      });
    });
    test("in the zone, resolve reads a public git server, and a private one that gitAllow names", () => {
      for (const name of ["public", "private"])
        expect(inZone.sources[name], name).toMatchObject({ ready: "True", files: 1 });
      expect(new Set(inZone.requests["44.0.0.10"])).toEqual(new Set(["git.public.example"]));
      expect(new Set(inZone.requests["10.20.0.5"])).toEqual(new Set(["git.corp.example"]));
    });

    test("in the zone, resolve sends nothing to a private server that gitAllow does not name, and names the setting", () => {
      expect(inZone.sources["not-allowed"]).toEqual({
        ready: "False",
        message:
          "Starling does not connect to git.other.example: 10.30.0.5 is not a public address; ask the operator to allow its host or its range; the setting is gitAllow",
      });
      expect(inZone.requests["10.30.0.5"]).toEqual([]);
    });

    test("in the zone, webhook takes a token of a private issuer that gitAllow names", () => {
      expect(inZone.receivers.private).toEqual({ status: 202, refused: undefined });
      expect(inZone.requests["10.20.0.6"]).toContain("sso.corp.example");
    });

    test("in the zone, webhook sends nothing to a private issuer that gitAllow does not name, and names the setting", () => {
      expect(inZone.receivers["not-allowed"]).toEqual({
        status: 503,
        refused:
          "Starling does not connect to sso.other.example: 10.30.0.6 is not a public address; ask the operator to allow its host or its range; the setting is gitAllow",
      });
      expect(inZone.requests["10.30.0.6"]).toEqual([]);
    });

    test.each(Object.keys(forbidden))(
      "in the zone, webhook sends nothing for the issuer of the Receiver %s",
      (name) => {
        expect(inZone.receivers[name]).toEqual({
          status: 503,
          refused: expect.stringMatching(
            /^Starling does not connect to \S+: \S+ is (a link-local or reserved address|an address of the machine that asks); correct the URL$/,
          ),
        });
        for (const address of ["169.254.169.254", "fd00:ec2::254", "127.0.0.1", "::1"])
          expect(inZone.requests[address], address).toEqual([]);
      },
    );

    test("without resolveZone, webhook has no way to the private issuer", () => {
      expect(inHome.receivers.private).toEqual({ status: 503, refused: expect.stringContaining("ENOTFOUND") });
    });

    test("a host that the zone does not reach has a remedy for the network of the zone", () => {
      expect(inZone.sources.nameless?.message).toMatch(
        /ENOTFOUND git\.gone\.example\); zone spoke asks the resolver of its VPC: let that know the name, by a private hosted zone or a rule of Route 53 Resolver$/,
      );
      expect(inZone.sources.routeless?.message).toMatch(
        /ENETUNREACH .*; it is asked from zone spoke: look for a route from the subnets of the zone, and whether its security groups let the request out$/,
      );
    });

    test("without resolveZone, the network of home has no way to the private server, whatever gitAllow says", () => {
      expect(inHome.sources.public).toMatchObject({ ready: "True", files: 1 });
      expect(inHome.sources.private).toMatchObject({ ready: "False", message: expect.stringContaining("ENOTFOUND") });
    });

    test("the API says which zone reads Sources", () => {
      const reading = ({ zones: { items } }: ReadNetwork) =>
        items.filter(({ readsSources }) => readsSources === true).map(({ metadata }) => metadata.name);
      expect(reading(inZone)).toEqual(["spoke"]);
      expect(reading(inHome)).toEqual([]);
    });
  },
);
