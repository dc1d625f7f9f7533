import type { enums, Key, SignaturePacket, Subkey } from "openpgp";
import { errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** A text is signed line by line, a buffer as it is. */
export type PgpContent = string | Buffer;

export interface PgpSigned {
  readonly content: PgpContent;
  /** With its first and last line: `-----BEGIN PGP SIGNATURE-----`. */
  readonly armour: string;
}

export type PgpVerdict =
  | { readonly kind: "verified"; readonly fingerprint: string; readonly owner?: string }
  /** @param key - the fingerprint that the signature names, or the id of the key. */
  | { readonly kind: "unknown"; readonly key: string }
  | { readonly kind: "revoked"; readonly key: string }
  | { readonly kind: "expired"; readonly key: string; readonly at: Date; readonly hasSignedAfter: boolean }
  /** @param problem - as a part of a message: `uses SHA-1, which is not accepted`. */
  | { readonly kind: "weak" | "invalid"; readonly problem: string };

/** A signature has a few hundred bytes. */
const maxArmour = 16_384;
const maxProblem = 200;
/** The signer's clock may be ahead by this. */
const maxSkewMs = 5 * 60_000;

type Library = typeof import("openpgp");

/**
 * Verifies one armoured OpenPGP signature. As in git, in Flux and in Helm, the key must be valid now: a signature says
 * itself when it was made, so that whoever has an expired key could date it back. The library is a module of its own,
 * which is loaded when the first such signature is met.
 * @param trusted - armoured public keys; what cannot be read is no key.
 */
export async function verifyPgp(signed: PgpSigned, trusted: readonly string[], now: Date): Promise<PgpVerdict> {
  if (signed.armour.length > maxArmour) return invalid(`has more than ${maxArmour} characters`);
  const pgp = await import("openpgp");
  const signature = await readOrNothing(() => pgp.readSignature({ armoredSignature: signed.armour }));
  if (signature === undefined || signature.packets.length === 0) return invalid("is damaged");
  const [packet] = signature.packets;
  // Each could be of another signer, and one that cannot be read says nothing.
  if (signature.packets.length > 1) return invalid("is more than one signature");
  if (!(packet instanceof pgp.SignaturePacket)) return invalid("is of a version that is not accepted");
  const type = typeof signed.content === "string" ? pgp.enums.signature.text : pgp.enums.signature.binary;
  if (packet.signatureType !== type) return invalid("is of a type that is not accepted");
  const weak = weakHash(pgp, packet);
  if (weak !== undefined) return { kind: "weak", problem: `uses ${weak}, which is not accepted` };
  const created = packet.created?.getTime() ?? 0;
  const at = created > now.getTime() && created <= now.getTime() + maxSkewMs ? new Date(created) : now;
  const asked = { pgp, content: signed.content, type, packet, now: at };
  const verdicts: PgpVerdict[] = [];
  for (const key of await keysOf(pgp, trusted, packet)) verdicts.push(await judge(asked, key));
  return verdicts.find(({ kind }) => kind === "verified") ?? verdicts[0] ?? { kind: "unknown", key: namedKey(packet) };
}

/** Every copy of the key that signed: an older one may have expired. */
async function keysOf(pgp: Library, trusted: readonly string[], packet: SignaturePacket): Promise<readonly Key[]> {
  const read = await Promise.all(trusted.map((armoredKeys) => readOrNothing(() => pgp.readKeys({ armoredKeys }))));
  return read.flatMap((keys = []) => keys.filter((key) => key.getKeys(packet.issuerKeyID).length > 0));
}

interface Asked {
  readonly pgp: Library;
  readonly content: PgpContent;
  readonly type: enums.signature;
  readonly packet: SignaturePacket;
  readonly now: Date;
}

async function judge({ pgp, content, type, packet, now }: Asked, key: Key): Promise<PgpVerdict> {
  const fingerprint = key.getFingerprint().toUpperCase();
  const message =
    typeof content === "string"
      ? await pgp.createMessage({ text: content })
      : await pgp.createMessage({ binary: new Uint8Array(content) });
  const signers = key.getKeys(packet.issuerKeyID);
  const found = await problemOf(async () => {
    const [content] = message.packets;
    const [signer] = signers;
    if (content === undefined || signer === undefined) throw new Error("nothing was verified");
    await packet.verify(signer.keyPacket, type, content, now, true);
    await key.getSigningKey(packet.issuerKeyID, now);
    if ((packet.created ?? now) < signer.getCreationTime()) throw new Error("it is older than its key");
  });
  if (found === undefined) return { kind: "verified", fingerprint, ...(await ownerOf(key, now)) };
  // The library says these things in its messages only.
  if (/digest did not match|verification failed/i.test(found)) {
    return invalid("does not fit its content: it was changed after it was signed");
  }
  const subkeys = signers.filter((each): each is Subkey => "bindingSignatures" in each);
  if (await isRevoked(key, subkeys, now)) return { kind: "revoked", key: fingerprint };
  const at = await endOf(key, subkeys, now);
  if (at !== undefined && at <= now) {
    return { kind: "expired", key: fingerprint, at, hasSignedAfter: (packet.created ?? now) >= at };
  }
  return invalid(`does not count (${excerpt(found, maxProblem)})`);
}

async function isRevoked(key: Key, subkeys: readonly Subkey[], now: Date): Promise<boolean> {
  if (await key.isRevoked(undefined, undefined, now)) return true;
  for (const subkey of subkeys) {
    for (const binding of subkey.bindingSignatures) {
      if (await subkey.isRevoked(binding, key.keyPacket, now)) return true;
    }
  }
  return false;
}

/** When the key, or its subkey that signed, expires. */
async function endOf(key: Key, subkeys: readonly Subkey[], now: Date): Promise<Date | undefined> {
  const ends = await Promise.all([key.getExpirationTime(), ...subkeys.map((subkey) => subkey.getExpirationTime(now))]);
  const [first] = ends.filter((end) => end instanceof Date).toSorted((a, b) => a.getTime() - b.getTime());
  return first;
}

async function ownerOf(key: Key, now: Date): Promise<{ readonly owner?: string }> {
  const primary = await readOrNothing(() => key.getPrimaryUser(now));
  const id = primary?.user.userID?.userID ?? "";
  return id === "" ? {} : { owner: excerpt(id) };
}

const accepted = ["sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512"] as const;

/** @returns the name of a hash that is not accepted. */
function weakHash({ enums }: Library, { hashAlgorithm }: SignaturePacket): string | undefined {
  if (accepted.some((name) => enums.hash[name] === hashAlgorithm)) return undefined;
  if (hashAlgorithm === enums.hash.sha1) return "SHA-1";
  return hashAlgorithm === enums.hash.md5 ? "MD5" : `the hash ${hashAlgorithm}`;
}

function namedKey({ issuerFingerprint, issuerKeyID }: SignaturePacket): string {
  const hex = issuerFingerprint === null ? issuerKeyID.toHex() : Buffer.from(issuerFingerprint).toString("hex");
  return hex.toUpperCase();
}

async function readOrNothing<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch {
    return undefined;
  }
}

async function problemOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

function invalid(problem: string): PgpVerdict {
  return { kind: "invalid", problem };
}
