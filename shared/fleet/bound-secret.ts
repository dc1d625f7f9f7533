/**
 * Secrets that say for whom they are. Whoever may write a Cluster or a Source chooses the address and the name of the
 * secret; only who may write the secret chooses where its value is sent.
 */
import { quoted } from "#shared/base/shell-word.ts";

export interface SecretRefusal {
  /** `SecretUnbound`: it says for nobody. `SecretMismatch`: it is for somebody else. `InvalidCredentials`: it lacks the rest. */
  readonly code: "SecretUnbound" | "SecretMismatch" | "InvalidCredentials";
  /** Names the secret, and never what is in it. */
  readonly message: string;
}

/** The members of a secret's JSON; undefined when it is anything else, such as a bare token. */
export function secretMembers(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** In the value of a header, and of nothing but the secret itself: many a token was stored with the end of its line. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/** How a secret is put right. The value comes from a file: a command line is kept by shells and shown to everybody. */
export function putSecret(secret: string, example: Readonly<Record<string, unknown>>): string {
  const command = `aws secretsmanager put-secret-value --secret-id ${quoted(secret)} --secret-string file://FILE`;
  return `write ${JSON.stringify(example)} into FILE, then: ${command}`;
}
