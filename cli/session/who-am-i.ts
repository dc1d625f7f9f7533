import type { Session } from "#cli/session/session.ts";

/** `GET /v1/whoami`. */
export interface WhoAmI {
  /** The ARN that the installation reads from the signature, and writes to the audit log. */
  readonly principal: string;
  /** Its name, account and region: `starling.111122223333.eu-west-1`. */
  readonly installation: string;
}

export function askWhoAmI({ api }: Pick<Session, "api">): Promise<WhoAmI> {
  return api.call<WhoAmI>({ method: "GET", path: "/v1/whoami" });
}
