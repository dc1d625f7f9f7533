/** OpenPGP keys that the package makes: also expired and revoked ones, which a keyring would not sign with. */
import * as openpgp from "openpgp";

const dayMs = 86_400_000;

export interface PgpKey {
  readonly publicKey: string;
  /** The primary key's, in capitals. */
  readonly fingerprint: string;
  readonly secret: openpgp.PrivateKey;
}

export interface PgpKeyOptions {
  /** Age in days. */
  readonly madeBefore?: number;
  /** Days that it is valid, from then. */
  readonly validFor?: number;
  readonly rsaBits?: number;
  readonly owner?: string;
  readonly signingSubkey?: true;
}

export async function pgpKey(options: PgpKeyOptions = {}): Promise<PgpKey> {
  const { madeBefore = 1, validFor = 0, rsaBits, owner = "Ana", signingSubkey } = options;
  const { privateKey } = await openpgp.generateKey({
    userIDs: [{ name: owner, email: "ana@acme.io" }],
    date: new Date(Date.now() - madeBefore * dayMs),
    keyExpirationTime: validFor * 86_400,
    format: "object",
    config: { minRSABits: 1024 },
    ...(rsaBits === undefined ? { type: "ecc", curve: "ed25519Legacy" } : { type: "rsa", rsaBits }),
    subkeys: signingSubkey ? [{ sign: true }] : [],
  });
  return keyOf(privateKey);
}

async function keyOf(secret: openpgp.PrivateKey, publicKey: openpgp.Key = secret.toPublic()): Promise<PgpKey> {
  return { publicKey: publicKey.armor(), fingerprint: secret.getFingerprint().toUpperCase(), secret };
}

/** The same key, which its owner has revoked. */
export async function revokedKey({ secret }: PgpKey, reason?: openpgp.ReasonForRevocation): Promise<PgpKey> {
  const { publicKey } = await openpgp.revokeKey({
    key: secret,
    format: "object",
    ...(reason && { reasonForRevocation: reason }),
  });
  return keyOf(secret, publicKey);
}

/** The same key, valid until so many days from now. */
export async function extendedKey({ secret }: PgpKey, days: number): Promise<PgpKey> {
  const age = (Date.now() - secret.getCreationTime().getTime()) / 1000;
  const { privateKey } = await openpgp.reformatKey({
    privateKey: secret,
    userIDs: [{ name: "Ana", email: "ana@acme.io" }],
    keyExpirationTime: Math.round(age + days * 86_400),
    format: "object",
  });
  return keyOf(privateKey);
}

export interface SigningOptions {
  /** Days before now. */
  readonly before?: number;
}

/** An armoured signature over bytes. */
export async function signDetached(
  content: string,
  keys: readonly PgpKey[],
  { before = 0 }: SigningOptions = {},
): Promise<string> {
  const message = await openpgp.createMessage({ binary: Buffer.from(content) });
  return openpgp.sign({
    message,
    signingKeys: keys.map(({ secret }) => secret),
    detached: true,
    date: new Date(Date.now() - before * dayMs),
    config: { minRSABits: 1024 },
  });
}

/** A signature over this hash, which the package itself would not choose. */
export async function signWith(content: string, { secret }: PgpKey, hash: openpgp.enums.hash): Promise<string> {
  const packet = new openpgp.SignaturePacket();
  packet.signatureType = openpgp.enums.signature.binary;
  packet.publicKeyAlgorithm = secret.keyPacket.algorithm;
  packet.hashAlgorithm = hash;
  const [literal] = (await openpgp.createMessage({ binary: Buffer.from(content) })).packets;
  // Its declarations lack the configuration.
  const sign = packet.sign.bind(packet) as (...all: readonly unknown[]) => Promise<void>;
  await sign(secret.keyPacket, literal, new Date(), true, {
    ...openpgp.config,
    nonDeterministicSignaturesViaNotation: false,
  });
  const packets = new openpgp.PacketList<openpgp.SignaturePacket>();
  packets.push(packet);
  return new openpgp.Signature(packets).armor();
}

/** A clear-signed message. */
export async function clearSign(
  text: string,
  { secret }: PgpKey,
  { before = 0 }: SigningOptions = {},
): Promise<string> {
  const message = await openpgp.createCleartextMessage({ text });
  return openpgp.sign({ message, signingKeys: secret, date: new Date(Date.now() - before * dayMs) });
}
