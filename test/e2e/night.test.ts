/** At night: a rollout halts, its alarm rings, and its section of the runbook finds and cures it. */
import { expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import type { ApiList, LogItem } from "#shared/fleet/api/objects.ts";
import { alarmState } from "#test/support/alarm-state.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { type EmbeddedLine, samplesIn } from "#test/support/embedded-metrics.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { runbookSections } from "#test/support/runbook.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";
import { functionNamed, ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const { Variables } = functionNamed(resources, "tick").Properties.Environment as {
  Variables: Record<string, unknown>;
};

/** `FleetWatchHalted` and so on. */
function alarmOf(name: string) {
  const found = ofType(resources, "AWS::CloudWatch::Alarm").filter(({ id }) => id.startsWith(`Wiring${name}`));
  const [alarm] = found;
  if (alarm === undefined || found.length > 1) throw new Error(`${found.length} alarms are named ${name}`);
  return alarm;
}

/** Lines of this machine, and what CloudWatch would say after periods that all were as those lines say. */
function alarmsOver(lines: readonly EmbeddedLine[], { machine }: Pick<World, "machine">) {
  const nameThere = (value: string) =>
    value === machine.eks.installation ? textOf(Variables.STARLING_INSTALLATION) : value;
  return (name: string, from: number) => {
    const alarm = alarmOf(name);
    const { Period = 300, EvaluationPeriods } = alarm.Properties as { Period?: number; EvaluationPeriods: number };
    const nowSeconds = 1_795_000_000;
    const samples = Array.from({ length: EvaluationPeriods }, (_, index) =>
      samplesIn(lines.slice(from), { atSeconds: nowSeconds - index * Period - 1, nameThere }),
    );
    return alarmState(alarm, samples.flat(), { nowSeconds });
  };
}

const named: Readonly<Record<string, string>> = {
  GROUP: "web",
  NAMESPACE: "shop",
  SOURCE: "app",
  CLUSTER: "canary-1",
};

/** The words of a line of the runbook, after `starling`, with names of this world in the place of those in capitals. */
function wordsOf(line: string): readonly string[] {
  const words = line.match(/"[^"]*"|\S+/g) ?? [];
  return words
    .slice(1)
    .map((word) => word.replaceAll('"', "").replaceAll(/\b[A-Z]{4,}\b/g, (name) => named[name] ?? name));
}

const good = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });
const bad = {
  "deploy/settings.yaml": `${namespaceManifest}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "Settings_", namespace: shop}\n`,
};

test("a halted rollout is found by its alarm, and cured by its section of the runbook", async () => {
  const lines: EmbeddedLine[] = [];
  const onLine = (_from: string, line: string) => void lines.push(JSON.parse(line) as EmbeddedLine);
  const world = { faults: quiet, onLine, rate: 20 };
  await webWorldOn(embeddedFleet)(
    { rings: { canary: 1, broad: 2 }, files: good("blue"), world },
    async (it, commit) => {
      const cli = openWorldCli(it);
      const over = alarmsOver(lines, it);
      const state = (name: string, from: number) => over(`FleetWatch${name}`, from);
      /** Until a survey says something of what is now. */
      const surveyed = async (from: number) => {
        const isTold = (line: EmbeddedLine) => "Targets" in line;
        await it.waitFor("a survey", async () => lines.slice(from).some(isTold));
      };
      await it.untilInSync("web", commit);
      const before = lines.length;
      await surveyed(before);
      expect(["Halted", "StaleSource", "OldRevision"].map((name) => state(name, before))).toEqual(["OK", "OK", "OK"]);

      const pushedAt = lines.length;
      await it.push("app", bad);
      await it.waitFor("it halts", async () => (await it.group("web")).status.state === "Halted");
      await it.waitFor("the alarm", async () => state("Halted", pushedAt) === "ALARM");
      expect(["StaleSource", "OldRevision"].map((name) => state(name, pushedAt))).toEqual(["OK", "OK"]);

      const section = runbookSections().find(({ anchor }) => anchor === "halted-rollout");
      const [halted, , status, failed, page] = section?.commands ?? [];
      for (const [line = "", says] of [
        [halted, "web"],
        [status, "canary"],
        [failed, "canary-1"],
        [page, "Halted"],
      ] as const) {
        const { out, code, err } = await cli.run(wordsOf(line));
        expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
        expect(out, line).toContain(says);
      }

      // What led there, from its end to its beginning.
      const told = await cli.run("logs syncgroup/web --since 1h -o json --limit 1000");
      const about = JSON.parse(told.out) as ApiList<LogItem>;
      const end = about.items.findLast(({ level }) => level === "WARN");
      expect(end).toMatchObject({
        function: "render",
        message: "rendering failed",
        fields: { subject: "SyncGroup/web" },
      });
      const led = await cli.run(`logs --id ${end?.correlationId} -o json`);
      const chain = (JSON.parse(led.out) as ApiList<LogItem>).items;
      expect([...new Set(chain.map(({ function: from }) => from))]).toEqual(
        expect.arrayContaining(["webhook", "resolve", "rollout", "render"]),
      );
      expect(chain[0]).toMatchObject({ function: "webhook", message: "push received" });
      expect(chain.map(({ at }) => at)).toEqual(chain.map(({ at }) => at).sort());
      expect((await cli.run("logs sync/web.app --cluster broad-1 --since 1h")).out).not.toContain("canary-1");

      await it.untilInSync("web", await it.push("app", good("green")));
      const curedAt = lines.length;
      await surveyed(curedAt);
      expect(state("Halted", curedAt)).toBe("OK");

      // No line of any other section is one that the command does not know.
      for (const line of runbookSections().flatMap(({ commands }) => commands)) {
        const { code, err } = await cli.run(wordsOf(line));
        expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
      }
      cli.close();
    },
  );
}, 240_000);
