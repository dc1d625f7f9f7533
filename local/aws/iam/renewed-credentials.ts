import type { Principals, SessionKey } from "#local/aws/iam/principals.ts";

/** The longest session of a function on Lambda. */
const sessionMs = 12 * 60 * 60 * 1000;
/**
 * The SDK fetches new credentials within five minutes before they expire. This short time makes it ask before every
 * call.
 */
const askAgainMs = 60_000;

/** Credentials in the form that the SDK expects. */
export interface RenewedCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiration: Date;
}

/**
 * Provides temporary credentials of a role. The SDK asks before every call and gets the same credentials until they
 * expire.
 */
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
