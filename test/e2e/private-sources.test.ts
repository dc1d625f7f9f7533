/** Sources of private git servers are read from the network of the zone in the setting `resolveZone`, as far as `gitAllow` goes. */
import { beforeAll, describe, expect, test } from "vitest";
import { lackOfNetworks, readInNetwork } from "#test/support/private-network/read-in-network.ts";
import type { ReadNetwork } from "#test/support/private-network/sources-program.ts";

const zones = JSON.stringify([
  { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] },
]);
const settings = { zones, gitAllow: "10.20.0.0/16" };
/** The addresses are those of the test's own network, which leads nowhere else. */
const internet = { "git.public.example": "44.0.0.10" };
const ofZone = { ...internet, "git.corp.example": "10.20.0.5", "git.other.example": "10.30.0.5" };
const sources = {
  public: "git.public.example",
  private: "git.corp.example",
  "not-allowed": "git.other.example",
  nameless: "git.gone.example",
  routeless: "10.20.0.99",
};
const lack = lackOfNetworks();

describe.skipIf(lack !== undefined)(
  `an installation in a network of its own${lack === undefined ? "" : ` (skipped: ${lack})`}`,
  () => {
    let inZone: ReadNetwork;
    let inHome: ReadNetwork;
    beforeAll(async () => {
      inZone = await readInNetwork({ hosts: ofZone, sources, settings: { ...settings, resolveZone: "spoke" } });
      inHome = await readInNetwork({ hosts: internet, sources, settings });
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
