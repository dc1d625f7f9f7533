import { refusal } from "#functions/api/request/refusal.ts";

/**
 * @param until - a time in UTC, as `toISOString` writes it.
 * @param without - what leaving the time out does, such as `to hold until a release`; absent when it is required.
 * @throws StarlingError `BadRequest` for a time that has passed.
 */
export function requireLater(until: string | undefined, now: Date, without?: string): void {
  if (until === undefined || until > now.toISOString()) return;
  const orNone = without === undefined ? "" : `, or leave it out ${without}`;
  throw refusal("BadRequest", `until: ${until} has passed; give a later time${orNone}`);
}
