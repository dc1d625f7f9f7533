import type { Principals, SessionKey } from "#local/aws/iam/principals.ts";

/** What a session of a function lasts on Lambda, at most. */
const sessionMs = 12 * 60 * 60 * 1000;
/** The SDK asks for others when those it has end within five minutes: told so little, it asks before every call. */
const askAgainMs = 60_000;

/** As the SDK takes them. */
export interface RenewedCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiration: Date;
}

/** Temporary credentials of a role, asked for before every call: the same until they expire, then new ones. */
export function renewedCredentials(principals: Principals, principalArn: string): () => Promise<RenewedCredentials> {
  let held: SessionKey | undefined;
  return async () => {
    const now = Date.now();
    const known = held === undefined ? undefined : principals.find(held.accessKeyId);
    if (held === undefined || known?.expiresAt === undefined || known.expiresAt.getTime() <= now) {
      held = principals.startSession({ principalArn, expiresAt: new Date(now + sessionMs) });
    }
    const { accessKeyId, secretAccessKey, sessionToken } = held;
    return { accessKeyId, secretAccessKey, sessionToken, expiration: new Date(now + askAgainMs) };
  };
}
