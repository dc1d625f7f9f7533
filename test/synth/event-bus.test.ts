import { describe, expect, test } from "vitest";
import { mayDo, statementsOf } from "#test/support/policy-guard.ts";
import { folders } from "#test/synth/grants.ts";
import { functionNamed, listOf, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

type Resources = Parameters<typeof statementsOf>[0];

const ofAnother = "arn:aws:events:eu-west-1:444455556666:event-bus/fleet";
const inAccount = (name: string) => `arn:<AWS::Partition>:events:<AWS::Region>:<AWS::AccountId>:event-bus/${name}`;

const eventsOf = (resources: Resources, folder: string) =>
  statementsOf(resources, folder).filter(({ Action }) => listOf(Action).some((action) => action.startsWith("events:")));

/** The bus in the function's environment. */
function busOf(resources: Resources): unknown {
  const { Variables } = functionNamed(resources, "resolve").Properties.Environment as {
    Variables: Record<string, unknown>;
  };
  return Variables.STARLING_EVENT_BUS;
}

describe("the setting eventBus", () => {
  test.each<[string, Readonly<Record<string, string>>, string, string]>([
    ["left out", {}, "default", inAccount("default")],
    ["a name", { eventBus: "fleet" }, "fleet", inAccount("fleet")],
    ["the ARN of a bus of another account", { eventBus: ofAnother }, ofAnother, ofAnother],
  ])("%s: resolve alone may put events of Starling on that bus, and on no other", async (_, context, bus, arn) => {
    const { resources } = await synthesizeTemplates(context);
    expect(busOf(resources)).toBe(bus);
    const statements = eventsOf(resources, "resolve");
    expect(statements.flatMap(({ Action }) => listOf(Action))).toEqual(["events:PutEvents"]);
    expect(statements.flatMap(({ Resource }) => listOf(Resource).map(textOf))).toEqual([arn]);
    const may = (resource: string, eventSource: string) =>
      mayDo({ action: "events:PutEvents", resource, eventSource }, statements);
    expect(may(arn, "starling")).toBe(true);
    expect(may(arn, "aws.s3")).toBe(false);
    expect([may(`${arn}-2`, "starling"), may(inAccount("others"), "starling")]).toEqual([false, false]);
    expect(folders.filter((folder) => eventsOf(resources, folder).length > 0)).toEqual(["resolve"]);
  });

  test("none: no function may put an event on any bus", async () => {
    const { resources } = await synthesizeTemplates({ eventBus: "none" });
    expect(busOf(resources)).toBe("none");
    expect(folders.filter((folder) => eventsOf(resources, folder).length > 0)).toEqual([]);
  });

  test.each(["https://events", "arn:aws:events:eu-west-1:444455556666:rule/fleet", "fleet bus", ""])(
    'the value "%s" is refused by the name of the setting',
    async (eventBus) => {
      await expect(synthesizeTemplates({ eventBus })).rejects.toThrow("eventBus");
    },
  );
});
