import { claimDue, type TickPorts } from "#functions/tick/claim-due.ts";
import { type ZonesPorts, zonesSurvey } from "#functions/tick/survey-zones.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { watchAlarms } from "#functions/tick/watch-alarms.ts";
import { newCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { tickUpdate } from "#shared/fleet/rows/tick-row.ts";
import type { AlarmReader } from "#shared/ports.ts";

/** Milliseconds between two surveys of a sandbox; a little less than five minutes, because minutes vary in length. */
const surveyEveryMs = 290_000;

/**
 * Claims the due rows each minute, reads the alarms of bakes, and reports the state of the fleet every five minutes
 * after that. A new sandbox does both, because it does not know when the last report was made.
 */
export function everyMinute(ports: TickPorts & ZonesPorts & { readonly alarms: AlarmReader }): () => Promise<void> {
  const surveyZones = zonesSurvey(ports);
  let surveyedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = ports.clock.now();
    return underCorrelation(newCorrelation("tick", now), async () => {
      const { stageRuns } = await claimDue(ports);
      // A dead timer cannot report itself: starling doctor reads when it last ran.
      await ports.table.update(tickUpdate(ports.clock.now()));
      await watchAlarms(stageRuns, ports);
      if (now.getTime() - surveyedAt < surveyEveryMs) return;
      // The role of a zone writes the rows of its clusters. A malformed one fails the survey of zones, but not that of the fleet.
      const [zones] = await Promise.allSettled([surveyZones()]);
      await takeSurvey(ports, zones.status === "fulfilled" ? zones.value : undefined);
      surveyedAt = now.getTime();
      if (zones.status === "rejected") throw zones.reason;
    });
  };
}
