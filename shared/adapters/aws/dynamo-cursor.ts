/** Encodes where a page of DynamoDB ended, as a text that users send back. */
import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

export function nextOf(last: Record<string, unknown> | undefined): { readonly next?: string } {
  return last === undefined ? {} : { next: Buffer.from(JSON.stringify(last)).toString("base64url") };
}

/**
 * Users send cursors back. DynamoDB would report a cursor of another query like a defect of Starling, so that it is
 * refused here.
 */
export function startAfter(
  cursor: string | undefined,
  expected: { readonly partition: readonly [string, string]; readonly others: readonly string[] },
): { readonly ExclusiveStartKey?: Record<string, string> } {
  if (cursor === undefined) return {};
  const [partition, value] = expected.partition;
  const key = decodeCursor(cursor);
  const members = [partition, ...expected.others];
  const fits = Object.keys(key).length === members.length && members.every((name) => typeof key[name] === "string");
  if (!fits || key[partition] !== value) throw invalidContinue();
  return { ExclusiveStartKey: key as Record<string, string> };
}

function decodeCursor(cursor: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // The text is not a cursor of Starling; it is refused below.
  }
  throw invalidContinue();
}

function invalidContinue(): StarlingError {
  return new StarlingError("the continue token is not one of this list; list again from the start", {
    code: otherCode("InvalidContinue"),
    retry: "permanent",
  });
}
