/** Alarms and runbook at night: a rollout halts, its alarm rings, and its section of the runbook finds and cures it. */
import { expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import type { ApiList, LogItem } from "#shared/fleet/api/objects.ts";
import { alarmWatch, runbookWords, untilSurveyed } from "#test/support/alarm-watch.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { EmbeddedLine } from "#test/support/embedded-metrics.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { runbookSections } from "#test/support/runbook.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();

const good = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });
const bad = {
  "deploy/settings.yaml": `${namespaceManifest}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "Settings_", namespace: shop}\n`,
};

test("an alarm rings for a halted rollout, and its section of the runbook cures it", async () => {
  const lines: EmbeddedLine[] = [];
  const onLine = (_from: string, line: string) => void lines.push(JSON.parse(line) as EmbeddedLine);
  const world = { faults: quiet, onLine, rate: 20 };
  await webWorldOn(embeddedFleet)(
    { rings: { canary: 1, broad: 2 }, files: good("blue"), world },
    async (it, commit) => {
      const cli = openWorldCli(it);
      const watch = alarmWatch(resources, lines, it);
      const state = (name: string, from: number) => watch(`FleetWatch${name}`, from);
      await it.untilInSync("web", commit);
      const before = await untilSurveyed(it, lines);
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
        const { out, code, err } = await cli.run(runbookWords(line));
        expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
        expect(out, line).toContain(says);
      }

      // The log lines that led there, the newest first.
      const ran = await cli.run("logs syncgroup/web --since 1h -o json --limit 1000");
      const about = JSON.parse(ran.out) as ApiList<LogItem>;
      const end = about.items.findLast(({ level }) => level === "WARN");
      expect(end).toMatchObject({
        function: "render",
        message: "rendering failed",
        fields: { owner: "SyncGroup/web" },
      });
      const led = await cli.run(`logs --id ${end?.correlationId} -o json`);
      const chain = (JSON.parse(led.out) as ApiList<LogItem>).items;
      expect([...new Set(chain.map(({ function: from }) => from))]).toEqual(
        expect.arrayContaining(["webhook", "resolve", "rollout", "render"]),
      );
      expect(chain[0]).toMatchObject({ function: "webhook", message: "push received" });
      expect(chain.map(({ at }) => at)).toEqual(chain.map(({ at }) => at).sort());
      expect((await cli.run("logs sync/web.app --cluster broad-1 --since 1h")).out).not.toContain("canary-1");

      // Only the audit log names the persons who changed something.
      expect(about.items.filter(({ function: from }) => from === "api")).toEqual([]);
      const audit = JSON.parse((await cli.run("logs syncgroup/web --audit -o json")).out) as ApiList<LogItem>;
      expect(new Set(audit.items.map(({ function: from }) => from))).toEqual(new Set(["api"]));
      expect(audit.items).toContainEqual(
        expect.objectContaining({ message: "write", fields: expect.objectContaining({ audit: true, name: "web" }) }),
      );

      await it.untilInSync("web", await it.push("app", good("green")));
      const curedAt = await untilSurveyed(it, lines);
      expect(state("Halted", curedAt)).toBe("OK");

      // The command knows the lines of all other sections.
      for (const line of runbookSections().flatMap(({ commands }) => commands)) {
        const { code, err } = await cli.run(runbookWords(line));
        expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
      }
      cli.close();
    },
  );
}, 240_000);
