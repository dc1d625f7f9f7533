import { type Check, type CheckOutcome, once } from "#cli/doctor/checks.ts";
import {
  judgeConcurrency,
  judgeDeadLetters,
  judgeDueWork,
  judgeTick,
  judgeVersion,
  judgeWebhookSecret,
  judgeZones,
} from "#cli/doctor/judge-installation.ts";
import { readingPlace } from "#cli/format/reading-place.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import type { Session } from "#cli/session/session.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import type { Fact, Installation } from "#shared/fleet/api/installation.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";

/** Checks of what the installation reports about itself. They need the permission to call its API. */
export function installationChecks(session: Session): readonly Check[] {
  const installation = once(() => session.api.call<Installation>({ method: "GET", path: "/v1/installation" }));
  const judged = <T>(
    part: (reported: Installation) => Fact<T>,
    judge: (value: T, reported: Installation) => CheckOutcome,
  ) => {
    return async (): Promise<CheckOutcome> => {
      const reported = await installation();
      const fact = part(reported);
      if (!fact.known) return { state: "unchecked", because: `the installation does not know: ${fact.message}` };
      return judge(fact.value, reported);
    };
  };
  return [
    {
      name: "version",
      needs: ["permission"],
      async run() {
        const { version } = await session.api.call<{ version: string }>({ method: "GET", path: "/v1/version" });
        return judgeVersion({ stack: version, command: starlingVersion });
      },
    },
    { name: "installation", needs: ["permission"], run: () => checkInstallation(installation) },
    {
      name: "webhook-secret",
      needs: ["installation"],
      run: judged((reported) => reported.webhookSecret, judgeWebhookSecret),
    },
    { name: "tick", needs: ["installation"], run: judged((reported) => reported.tick, judgeTick) },
    { name: "due-work", needs: ["tick"], run: judged((reported) => reported.due, judgeDueWork) },
    {
      name: "dead-letters",
      needs: ["installation"],
      run: judged((reported) => reported.deadLetters, judgeDeadLetters),
    },
    {
      name: "sources",
      needs: ["installation"],
      run: async () => ({ state: "ok", found: readingPlace((await installation()).resolveZone) }),
    },
    {
      name: "zones",
      needs: ["installation"],
      async run() {
        const [{ version }, zones] = await Promise.all([
          installation(),
          session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" }),
        ]);
        return judgeZones(zones.items, version);
      },
    },
    { name: "concurrency", needs: ["installation"], run: judged((reported) => reported.concurrency, judgeConcurrency) },
  ];
}

async function checkInstallation(installation: () => Promise<Installation>): Promise<CheckOutcome> {
  try {
    return { state: "ok", found: (await installation()).name };
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    const problem = "the stack is older than this command, and does not report its state";
    return { state: "wrong", found: "404", problem, remedy: "npx cdk deploy --all" };
  }
}
