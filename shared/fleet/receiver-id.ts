import { hexOf, sha256 } from "#shared/base/digest.ts";
import type { ReceiverRow } from "#shared/fleet/rows/object-rows.ts";

const idDigits = 40;

/**
 * The last segment of a Receiver's URL. It stays while the Receiver exists. Nobody can guess it, because it comes from the
 * uid, but it is no secret: senders show it, and every viewer sees it.
 */
export function receiverId({ uid }: Pick<ReceiverRow, "uid">): string {
  return hexOf(sha256(`receiver ${uid}`)).slice(0, idDigits);
}

/** @param id - as `receiverId` makes it. */
export function receiverPath(id: string): string {
  return `/hook/r/${id}`;
}

/** Whether the text has the form of an id. */
export function isReceiverId(text: string): boolean {
  return text.length === idDigits && /^[0-9a-f]+$/.test(text);
}
