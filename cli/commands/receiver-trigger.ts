import type { ExitReason } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { counted } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";

interface TriggerAnswer {
  readonly polled: readonly string[];
  readonly suspended: readonly string[];
}

/** Polls the Sources of a Receiver, without a sender. Exits with 1 when it has none that can be polled. */
export async function triggerByName(session: Session, name: string): Promise<ExitReason> {
  session.announce();
  const receiver = { kind: "Receiver", name } as const;
  const { polled, suspended } = await session.api.call<TriggerAnswer>({
    method: "POST",
    path: `${pathOfObject(receiver, session.namespace())}/trigger`,
    body: defined({ reason: session.options.reason }),
  });
  for (const source of polled) session.io.out(`source/${source} polled\n`);
  for (const source of suspended)
    session.io.out(`source/${source} is suspended and was not polled (starling resume source/${source})\n`);
  if (polled.length > 0) return "done";
  session.note(`receiver/${name} polls ${counted(0, "source")}: starling describe receiver/${name}`);
  return "no";
}
