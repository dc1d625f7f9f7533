/** The prices of zones are those of docs/cost.md. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { aMonth, networkPrices } from "#shared/fleet/zone-prices.ts";

const page = readFileSync("docs/cost.md", "utf8");

/** The first number in the column USD of the row about this. */
function monthlyOnPage(what: string): number {
  const row = page.split("\n").find((line) => line.startsWith(`| ${what}`));
  const price = /^\| [^|]+ \| (\d+(?:\.\d+)?)/.exec(row ?? "")?.[1];
  if (price === undefined) throw new Error(`docs/cost.md has no price of: ${what}`);
  return Number(price);
}

test("the monthly price of each part of a zone's network is the one in docs/cost.md", () => {
  const { region, prices } = networkPrices("us-east-1");
  expect(region).toBe("us-east-1");
  expect(page).toContain("US East for a month of 730 hours");
  expect({
    natGateway: aMonth(prices.natGateway),
    publicAddress: aMonth(prices.publicAddress),
    interfaceEndpoint: aMonth(prices.interfaceEndpoint),
  }).toEqual({
    natGateway: monthlyOnPage("NAT gateway "),
    publicAddress: monthlyOnPage("public IPv4 address"),
    interfaceEndpoint: monthlyOnPage("interface endpoint"),
  });
});

test.each([undefined, "eu-west-1"])(
  "in the region %s, whose prices are not known, the prices name their own region",
  (region) => {
    expect(networkPrices(region)).toEqual(networkPrices("us-east-1"));
  },
);
