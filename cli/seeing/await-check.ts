import type { Session } from "#cli/session/session.ts";

const pollMs = 500;
/** The time that a message may wait behind others, with two more requests. */
const patienceMs = 90_000;
/** The API answers a repeated request with the earlier one for 20 seconds. After that it sends another message. */
const askAgainMs = 25_000;

export const patienceSeconds = patienceMs / 1000;

interface Stated<Answer> {
  readonly answer?: Answer;
}

export interface Awaited<Asked, Stored> {
  readonly asked: Asked;
  /** The last answer of the API. */
  readonly stored: Stored;
  /** Whether a worker answered this request in time. */
  readonly isAnswered: boolean;
}

/** Asks for a check and reads until a worker has answered it. @param path - takes POST, which asks, and GET. */
export async function awaitCheck<Asked extends { readonly id: string }, Stored extends Stated<{ readonly id: string }>>(
  session: Session,
  path: string,
): Promise<Awaited<Asked, Stored>> {
  const begun = session.io.now().getTime();
  const ask = () => session.api.call<Asked>({ method: "POST", path });
  for (let [asked, askedAt] = [await ask(), begun]; ; ) {
    const stored = await session.api.call<Stored>({ method: "GET", path });
    if (stored.answer?.id === asked.id) return { asked, stored, isAnswered: true };
    const now = session.io.now().getTime();
    if (now - begun > patienceMs) return { asked, stored, isAnswered: false };
    if (now - askedAt > askAgainMs) [asked, askedAt] = [await ask(), now];
    await session.pause(pollMs);
  }
}
