/**
 * Secrets that state what they are for. Authors of a Cluster or a Source choose the address and the name of the secret;
 * only authors of the secret choose where its value is sent.
 */
import { quoted } from "#shared/base/shell-word.ts";

export interface SecretRefusal {
  /**
   * `SecretUnbound`: it states no target. `SecretMismatch`: it is for another target. `InvalidCredentials`: it lacks
   * the rest.
   */
  readonly code: "SecretUnbound" | "SecretMismatch" | "InvalidCredentials";
  /** Names the secret, and never its content. */
  readonly message: string;
}

/** The members of a secret's JSON; undefined for anything else, such as a bare token. */
export function secretMembers(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** The value goes into a header, so it must be the secret alone: many tokens were stored with a line end. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/** How to correct a secret. The value comes from a file, because shells record a command line and show it to everybody. */
export function putSecret(secret: string, example: Readonly<Record<string, unknown>>): string {
  const command = `aws secretsmanager put-secret-value --secret-id ${quoted(secret)} --secret-string file://FILE`;
  return `write ${JSON.stringify(example)} into FILE, then: ${command}`;
}
