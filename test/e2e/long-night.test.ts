/** Alarms and runbook at night: a cluster is silent, a git host is down, the timer stands still, and a freeze is forgotten. */

import { expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { alarmWatch, runbookCommands, runbookWords, untilSurveyed } from "#test/support/alarm-watch.ts";
import { clockAhead } from "#test/support/clock-ahead.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { EmbeddedLine } from "#test/support/embedded-metrics.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const rate = 20;
const hour = 3_600_000;

const content = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });
const fleetAlarms = ["Halted", "StaleSource", "OldRevision", "Unreachable"];

test("alarms find a silent cluster, a dead git host, a stopped timer and a forgotten freeze, and the runbook cures each", async () => {
  const lines: EmbeddedLine[] = [];
  const onLine = (_from: string, line: string) => void lines.push(JSON.parse(line) as EmbeddedLine);
  const { clock, pass } = clockAhead(rate);
  let isHostDown = false;
  const disturbGit = () => (isHostDown ? ({ when: "before", as: "serverError" } as const) : undefined);
  const world = { faults: quiet, onLine, rate, clock, disturbGit };
  const rollout = { maxUnreachable: "50%" };
  await webWorldOn(embeddedFleet)(
    { rings: { canary: 2, broad: 2 }, files: content("blue"), rollout, world },
    async (it, commit) => {
      const cli = openWorldCli(it);
      const watch = alarmWatch(resources, lines, it);
      /** The alarms that ring for the metrics from now on. */
      const ringing = async () => {
        const from = await untilSurveyed(it, lines);
        return fleetAlarms.filter((name) => watch(`FleetWatch${name}`, from) === "ALARM");
      };
      const untilRinging = (...names: readonly string[]) =>
        it.waitFor(`ringing: ${names.join(", ") || "nothing"}`, async () => (await ringing()).join() === names.join());
      /** Runs the read commands of a runbook section. All succeed, and their output contains this text. */
      const investigated = async (anchor: string, says: string) => {
        const said = [];
        for (const line of runbookCommands(anchor).filter((command) =>
          /^starling (get|describe|rollout status)/.test(command),
        )) {
          const { code, out, err } = await cli.run(runbookWords(line));
          expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
          said.push(out);
        }
        expect(said.join("")).toContain(says);
      };
      const resolved = async (anchor: string, verb: string) => {
        const line = runbookCommands(anchor).find((command) => command.startsWith(`starling ${verb}`)) ?? "";
        expect(await cli.run(runbookWords(line)), line).toMatchObject({ code: 0 });
      };
      await it.untilInSync("web", commit);
      await untilRinging();

      // One of four clusters is more than one in ten.
      await it.fleet.setFaults?.("canary-1", { resets: { probability: 1 } });
      await it.push("app", content("green"));
      await untilRinging("Unreachable");
      await investigated("unreachable-clusters", "canary-1");
      await it.fleet.setFaults?.("canary-1", {});
      await untilRinging();

      isHostDown = true;
      pass(2 * hour);
      const ready = async () => (await it.source("app")).status.conditions.find(({ type }) => type === "Ready");
      await it.waitFor("what the host answers", async () => (await ready())?.status === "False");
      // No tick runs for three hours, so due rows are late and the Source is stale.
      const before = lines.length;
      pass(3 * hour);
      await it.waitFor("the late timer", async () => watch("TickWatchLag", before) === "ALARM");
      await untilRinging("StaleSource");
      await investigated("stale-source", "GitOperationFailed");
      const after = await untilSurveyed(it, lines);
      expect(watch("TickWatchLag", after)).toBe("OK");
      isHostDown = false;
      await resolved("stale-source", "reconcile source");
      await untilRinging();

      expect(await cli.run(["freeze", "--reason", "forgotten"])).toMatchObject({ code: 0 });
      const last = await it.push("app", content("red"));
      await it.waitFor("what waits", async () => (await it.group("web")).status.rollout === 3);
      pass(15 * 24 * hour);
      await untilRinging("OldRevision");
      await investigated("old-revision", "forgotten");
      await resolved("old-revision", "thaw");
      await it.untilInSync("web", last);
      await untilRinging();

      // A suspended group waits on purpose: commands show it, and no alarm rings.
      expect(await cli.run("suspend syncgroup/web -n shop --reason INC-4711")).toMatchObject({ code: 0 });
      const kept = await it.push("app", content("white"));
      await it.waitFor("its Source", async () => (await it.source("app")).status.artifact?.revision.includes(kept));
      pass(15 * 24 * hour);
      await untilRinging();
      const longest = lines.findLast((line) => "OldestSuspend" in line)?.OldestSuspend;
      expect(longest).toBeGreaterThanOrEqual((15 * 24 * hour) / 1000);
      await investigated("old-revision", "INC-4711");
      await resolved("old-revision", "resume");
      await it.untilInSync("web", kept);
      await untilRinging();
      cli.close();
    },
  );
}, 760_000);
