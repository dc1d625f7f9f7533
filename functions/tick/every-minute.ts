import { claimDue, type TickPorts } from "#functions/tick/claim-due.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { newCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { tickUpdate } from "#shared/fleet/rows/tick-row.ts";

/** Between two surveys of one sandbox; a little less than five minutes, since no minute is quite as long as another. */
const surveyEveryMs = 290_000;

/**
 * What each minute is for: to claim what is due; and every five minutes, after that, to tell how the fleet is. A sandbox that
 * is new does both, for nobody has told it when that was last done.
 */
export function everyMinute(ports: TickPorts): () => Promise<void> {
  let surveyedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = ports.clock.now();
    return underCorrelation(newCorrelation("tick", now), async () => {
      await claimDue(ports);
      // A dead timer says nothing of itself: starling doctor reads when it was alive last.
      await ports.table.update(tickUpdate(ports.clock.now()));
      if (now.getTime() - surveyedAt < surveyEveryMs) return;
      await takeSurvey(ports);
      surveyedAt = now.getTime();
    });
  };
}
