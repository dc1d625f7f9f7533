import { type Check, type CheckOutcome, once } from "#cli/doctor/checks.ts";
import {
  judgeConcurrency,
  judgeDeadLetters,
  judgeDueWork,
  judgeTick,
  judgeVersion,
  judgeWebhookSecret,
} from "#cli/doctor/judge-installation.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import type { Session } from "#cli/session/session.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import type { Fact, Installation } from "#shared/fleet/api/installation.ts";

/** Checks of what the installation reports about itself. They need the permission to call its API. */
export function installationChecks(session: Session): readonly Check[] {
  const installation = once(() => session.api.call<Installation>({ method: "GET", path: "/v1/installation" }));
  const judged = <T>(part: (told: Installation) => Fact<T>, judge: (value: T, told: Installation) => CheckOutcome) => {
    return async (): Promise<CheckOutcome> => {
      const told = await installation();
      const fact = part(told);
      if (!fact.known) return { state: "unchecked", because: `the installation does not know: ${fact.message}` };
      return judge(fact.value, told);
    };
  };
  return [
    {
      name: "version",
      needs: ["permission"],
      async look() {
        const { version } = await session.api.call<{ version: string }>({ method: "GET", path: "/v1/version" });
        return judgeVersion({ stack: version, command: starlingVersion });
      },
    },
    { name: "installation", needs: ["permission"], look: () => lookAtInstallation(installation) },
    { name: "webhook-secret", needs: ["installation"], look: judged((told) => told.webhookSecret, judgeWebhookSecret) },
    { name: "tick", needs: ["installation"], look: judged((told) => told.tick, judgeTick) },
    { name: "due-work", needs: ["tick"], look: judged((told) => told.due, judgeDueWork) },
    { name: "dead-letters", needs: ["installation"], look: judged((told) => told.deadLetters, judgeDeadLetters) },
    { name: "concurrency", needs: ["installation"], look: judged((told) => told.concurrency, judgeConcurrency) },
  ];
}

async function lookAtInstallation(installation: () => Promise<Installation>): Promise<CheckOutcome> {
  try {
    return { state: "ok", found: (await installation()).name };
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    const problem = "the stack is older than this command, and does not report its state";
    return { state: "wrong", found: "404", problem, remedy: "npx cdk deploy --all" };
  }
}
