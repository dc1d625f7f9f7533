import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { ParsedKey } from "ssh2";
import { StarlingError } from "#shared/base/errors.ts";
import type { SshKey } from "#shared/ports.ts";
import { WireReader } from "#shared/source/signatures/wire-reader.ts";

/** Opening a key with a passphrase takes a quarter of a second by design. */
const opened = new LRUCache<string, ParsedKey>({ max: 20 });

/** Each round of a passphrase takes 15 ms, in which the process does nothing else; 4,000,000,000 can be written. */
const maxRounds = 128;

/** @throws StarlingError `InvalidCredentials`, which never repeats the key. */
export async function parsedKey({ privateKey, passphrase }: SshKey): Promise<ParsedKey> {
  const digest = createHash("sha256")
    .update(JSON.stringify([privateKey, passphrase]))
    .digest("hex");
  const known = opened.get(digest);
  if (known !== undefined) return known;
  const rounds = roundsOf(privateKey);
  if (rounds > maxRounds) {
    const remedy = `write it again with ssh-keygen -p -a 16 -f FILE, or with up to ${maxRounds} rounds`;
    throw invalid(`has ${rounds} rounds for its passphrase; ${remedy}`);
  }
  const { utils } = (await import("ssh2")).default;
  const parsed: unknown = utils.parseKey(privateKey, passphrase);
  const [key] = Array.isArray(parsed) ? parsed : [parsed];
  if (key instanceof Error) throw invalid(problemIn(key.message, passphrase));
  if (!(key as ParsedKey).isPrivateKey()) throw invalid('is a public key; write the private one into "privateKey"');
  opened.set(digest, key);
  return key;
}

/** The rounds of bcrypt that open a key in the form of OpenSSH; 0 for any other text. */
function roundsOf(privateKey: string): number {
  const [, base64 = ""] = /-----BEGIN OPENSSH PRIVATE KEY-----\s([\s\S]+)/.exec(privateKey) ?? [];
  try {
    const key = new WireReader(Buffer.from(base64.split("-----")[0] ?? "", "base64"));
    key.take("openssh-key-v1\0".length);
    key.text();
    if (key.text() !== "bcrypt") return 0;
    const options = new WireReader(key.bytes());
    options.bytes();
    return options.number();
  } catch (error) {
    if (error instanceof RangeError) return 0;
    throw error;
  }
}

function problemIn(said: string, passphrase: string | undefined): string {
  if (/no passphrase/i.test(said)) return 'needs a passphrase; write it into "passphrase"';
  if (passphrase !== undefined && /decrypt|integrity|passphrase|check/i.test(said))
    return 'is not opened by "passphrase"; correct one of them';
  return "is no key that Starling reads; write it as `ssh-keygen -t ed25519` does, with its line ends as \\n";
}

function invalid(what: string): StarlingError {
  return new StarlingError(`the key in the secret of spec.git.credentials ${what}`, {
    code: "InvalidCredentials",
    retry: "permanent",
  });
}
