/**
 * How senders prove that they know one of the secrets. Every check takes the same time for every wrong proof, and
 * whichever secret is right. An empty secret proves nothing.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** Only a sender that has nothing better is verified with SHA-1. */
const digestBytes = { sha1: 20, sha256: 32, sha512: 64 } as const;
type SigningHash = keyof typeof digestBytes;

interface Signed {
  readonly body: Uint8Array;
  /** The text of the header: the hexadecimal HMAC, after `prefix`. */
  readonly header: string | undefined;
  /** For example `sha256=`. */
  readonly prefix: string;
  readonly hash?: SigningHash;
}

/** Whether one of the secrets signed the bytes. */
export function isSigned({ body, header = "", prefix, hash = "sha256" }: Signed, secrets: readonly string[]): boolean {
  const hex = header.slice(prefix.length).toLowerCase();
  if (header.slice(0, prefix.length).toLowerCase() !== prefix) return false;
  // Buffer drops an odd digit, and everything after a character that is no digit.
  if (hex.length !== 2 * digestBytes[hash] || !/^[0-9a-f]+$/.test(hex)) return false;
  const given = Buffer.from(hex, "hex");
  return some(secrets, (secret) => hmacEquals({ hash, secret, body, given }));
}

/** Whether the text is one of the secrets. */
export function isSentSecret(given: string | undefined, secrets: readonly string[]): boolean {
  if (given === undefined || given === "") return false;
  // Digests have one length, so that the comparison does not tell the length of the secret.
  const digest = sha256(given);
  return some(secrets, (secret) => timingSafeEqual(sha256(secret), digest));
}

/** Whether the password of HTTP basic authentication is one of the secrets. The name of the user does not count. */
export function isBasicPassword(header: string | undefined, secrets: readonly string[]): boolean {
  const encoded = /^basic ([A-Za-z0-9+/]+=*)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return false;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  return colon >= 0 && isSentSecret(pair.slice(colon + 1), secrets);
}

const signingToken = "whsec_";

/**
 * Whether one of the secrets signed the delivery as Standard Webhooks do: with a secret `whsec_<base64>`, over
 * `id.time.body`, in a header with one or more `v1,<base64>`. The time is not compared with the clock, because a replay
 * costs one listing.
 */
export function isSignedDelivery(
  { id, time, body, header }: Readonly<Record<"id" | "time" | "header", string>> & { readonly body: Uint8Array },
  secrets: readonly string[],
): boolean {
  const signed = Buffer.concat([Buffer.from(`${id}.${time}.`), body]);
  const proofs = header
    .split(" ", 8)
    .flatMap((part) => (part.startsWith("v1,") ? [Buffer.from(part.slice(3), "base64")] : []));
  const tokens = secrets
    .filter(isSigningToken)
    .map((secret) => Buffer.from(secret.slice(signingToken.length), "base64"));
  return some(
    proofs.filter((proof) => proof.length === digestBytes.sha256),
    (given) => some(tokens, (secret) => hmacEquals({ hash: "sha256", secret, body: signed, given })),
  );
}

/** Whether the secret only signs, so that a request that contains it proves nothing. */
export function isSigningToken(secret: string): boolean {
  return secret.startsWith(signingToken);
}

interface Hmac {
  readonly hash: SigningHash;
  readonly secret: string | Uint8Array;
  readonly body: Uint8Array;
  readonly given: Uint8Array;
}

function hmacEquals({ hash, secret, body, given }: Hmac): boolean {
  return timingSafeEqual(createHmac(hash, secret).update(body).digest(), given);
}

function sha256(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

/** Asks every item, also after one that fits, so that the time does not depend on which one fits. */
function some<Item extends string | Uint8Array>(items: readonly Item[], fits: (item: Item) => boolean): boolean {
  return items.filter((item) => item.length > 0).filter(fits).length > 0;
}
