/** The setting `resolveZone` puts the functions that read Sources into the network of a zone. */
import { App } from "aws-cdk-lib";
import { Annotations, Match } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { readSettings } from "#infra/read-settings.ts";
import { starlingStacks } from "#infra/starling.ts";
import { pageBlocks } from "#test/support/page-commands.ts";
import { statementsOf } from "#test/support/policy-guard.ts";
import { folders } from "#test/synth/grants.ts";
import { functionNamed, listOf, ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const spoke = { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
const zones = [spoke, { name: "private", vpc: {} }];

const names = folders.filter((folder) => folder !== "apply");
const readers: readonly string[] = ["resolve", "webhook"];
const context = { zones: JSON.stringify(zones), gitAllow: "10.20.0.0/16" };
const templates = {
  none: await synthesizeTemplates(context),
  spoke: await synthesizeTemplates({ ...context, resolveZone: "spoke" }),
  private: await synthesizeTemplates({ ...context, resolveZone: "private" }),
};

describe("the network of the functions that ask the hosts of Sources and issuers", () => {
  test.each(["spoke", "private"] as const)(
    "resolve and webhook are in the network of zone %s, and no other function moves",
    (zone) => {
      const { resources } = templates[zone];
      const inside = ofType(resources, "AWS::Lambda::Function").filter(
        ({ Properties }) => Properties.VpcConfig !== undefined,
      );
      expect(inside.map(({ id }) => id).sort()).toEqual(
        ["apply-private", "apply-spoke", "resolve", "webhook"].map((name) => functionNamed(resources, name).id).sort(),
      );
      for (const name of readers)
        expect(functionNamed(resources, name).Properties.VpcConfig).toEqual(
          functionNamed(resources, `apply-${zone}`).Properties.VpcConfig,
        );
    },
  );

  test("without the setting they run outside of every VPC", () => {
    for (const name of readers)
      expect(functionNamed(templates.none.resources, name).Properties).not.toHaveProperty("VpcConfig");
  });

  test("their roles may make the interfaces of a function in addition, and nothing else changes for any function", () => {
    const grants = (name: string, { resources }: (typeof templates)["none"]) =>
      statementsOf(resources, name).flatMap(({ Action, Resource }) =>
        listOf(Action).flatMap((action) => listOf(Resource).map((on) => `${action} ${textOf(on)}`)),
      );
    const interfaces = [
      "ec2:AssignPrivateIpAddresses *",
      "ec2:CreateNetworkInterface *",
      "ec2:DeleteNetworkInterface *",
      "ec2:DescribeNetworkInterfaces *",
      "ec2:DescribeSubnets *",
      "ec2:UnassignPrivateIpAddresses *",
    ];
    for (const name of names)
      expect(grants(name, templates.spoke).sort(), name).toEqual(
        [...grants(name, templates.none), ...(readers.includes(name) ? interfaces : [])].sort(),
      );
  });

  test("api, resolve and webhook know the zone, which is home without the setting", () => {
    const variablesOf = (name: string, { resources }: (typeof templates)["none"]) =>
      (functionNamed(resources, name).Properties.Environment as { Variables: Record<string, unknown> }).Variables;
    for (const name of ["api", ...readers]) {
      expect(variablesOf(name, templates.none).STARLING_RESOLVE_ZONE, name).toBe("home");
      expect(variablesOf(name, templates.spoke).STARLING_RESOLVE_ZONE, name).toBe("spoke");
    }
    for (const name of readers) expect(variablesOf(name, templates.spoke).STARLING_GIT_ALLOW).toBe("10.20.0.0/16");
  });

  test("the concurrency and the time limits stay as they are", () => {
    const bounds = ({ resources }: (typeof templates)["none"]) =>
      ofType(resources, "AWS::Lambda::EventSourceMapping").map(({ Properties }) => Properties.ScalingConfig);
    expect(bounds(templates.spoke)).toEqual(bounds(templates.none));
    for (const name of readers)
      expect(functionNamed(templates.spoke.resources, name).Properties.Timeout).toBe(
        functionNamed(templates.none.resources, name).Properties.Timeout,
      );
  });
});

test("the deployment on the page puts resolve into the zone that the page names", () => {
  const page = pageBlocks("tasks/read-private-sources.md").flatMap(({ text }) => text.split("\n"));
  const [command = ""] = page.filter((line) => line.startsWith("npx cdk deploy"));
  const given = [...command.matchAll(/ -c '?(\w+)=(\[[^']*\]|\S+)'?/g)].map(([, name = "", value]) => [name, value]);
  const settings = readSettings(Object.fromEntries(given));
  expect(settings).toMatchObject({ resolveZone: "spoke", gitAllow: ["git.corp.example", "10.20.0.0/16"] });
  expect(settings.zones.map(({ name }) => name)).toEqual(["spoke"]);
});

const elsewhere = { account: "111122223333", region: "eu-central-1", table: "state-Table", bucket: "state-blobs" };

describe("a wrong value is refused with the value, the known zones and the remedy", () => {
  test.each([
    [
      "a zone that is spelled wrong",
      { zones, resolveZone: "privat" },
      'setting resolveZone is "privat", but setting zones has only spoke, private; did you mean private?',
    ],
    [
      "a zone with a capital letter",
      { zones, resolveZone: "Spoke" },
      'setting resolveZone is "Spoke", but setting zones has only spoke, private; did you mean spoke?',
    ],
    [
      "a zone that is like none",
      { zones, resolveZone: "frankfurt" },
      'setting resolveZone is "frankfurt", but setting zones has only spoke, private; name one of them',
    ],
    [
      "a zone without the setting zones",
      { resolveZone: "spoke" },
      'setting resolveZone is "spoke", but setting zones has no zone of this account and region; add {"name": "spoke", "subnets": [...], "securityGroups": [...]} to it, or leave it out',
    ],
    [
      "a zone of another region",
      {
        zones: [...zones, { name: "far", region: "us-east-1", clusterNames: ["us-*"] }],
        home: elsewhere,
        resolveZone: "far",
      },
      'setting resolveZone is "far", which is in another account or region, and resolve is not; name one of spoke, private, or leave it out',
    ],
    [
      "home, which has no network",
      { zones, resolveZone: "home" },
      'setting resolveZone is "home", which has no network; leave it out, or name one of setting zones',
    ],
    [
      "no text",
      { zones, resolveZone: 7 },
      "setting resolveZone is 7; expected the name of a zone of setting zones, such as private",
    ],
    [
      "an empty text",
      { zones, resolveZone: "" },
      'setting resolveZone is ""; expected the name of a zone of setting zones, such as private',
    ],
  ])("%s", (_, given, message) => {
    expect(() => readSettings(given)).toThrow(message);
  });

  test("a zone of the setting is taken, from JSON too", () => {
    expect(readSettings({ zones: JSON.stringify(zones), resolveZone: "private" }).resolveZone).toBe("private");
  });
});

describe("private hosts that nothing can reach are reported at the synthesis", () => {
  const warned = (settings: Readonly<Record<string, unknown>>) => {
    const { control } = starlingStacks(new App({ context: { "aws:cdk:bundling-stacks": [] } }), readSettings(settings));
    return Annotations.fromStack(control)
      .findWarning("*", Match.stringLikeRegexp("gitAllow"))
      .map(({ entry }) => String(entry.data));
  };
  const gitAllow = ["git.corp.example", "10.20.0.0/16"];

  test("without a zone, the warning names a zone to add", () => {
    expect(warned({ gitAllow })).toEqual([
      'setting gitAllow has git.corp.example, 10.20.0.0/16, but resolve and webhook run outside of every VPC and reach public addresses only; set resolveZone to a zone of setting zones, such as {"name": "private", "subnets": [...], "securityGroups": [...]}, or leave gitAllow out [ack: starling:gitAllow]',
    ]);
  });

  test("with zones, the warning names them", () => {
    expect(warned({ gitAllow, zones })[0]).toContain("set resolveZone to one of spoke, private, or leave gitAllow out");
  });

  test.each([
    ["with resolveZone", { gitAllow, zones, resolveZone: "spoke" }],
    ["without gitAllow", { zones }],
  ])("%s there is no warning", (_, settings) => expect(warned(settings)).toEqual([]));
});
