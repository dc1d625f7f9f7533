import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { putSecret, secretMembers } from "#shared/fleet/bound-secret.ts";
import type { ReceiverRow } from "#shared/fleet/rows/object-rows.ts";
import type { SecretReader } from "#shared/ports.ts";

interface ReceiverSecrets {
  readonly values: readonly string[];
  /** Why one of the secrets has no value. */
  readonly failure?: unknown;
}

/**
 * Reads what the senders of a Receiver prove that they know. A secret is JSON with `token`, and optionally the `namespaces` of
 * the Receivers that may use it. While one of two secrets has no value, the other one counts.
 */
export async function readReceiverSecrets(
  { namespace, spec }: Pick<ReceiverRow, "namespace" | "spec">,
  reader: SecretReader,
): Promise<ReceiverSecrets> {
  const read = (spec.secrets ?? []).map(async (secret) => tokenIn(await reader.read(secret), { secret, namespace }));
  const results = await Promise.allSettled(read);
  const failed = results.find((result) => result.status === "rejected");
  return {
    values: results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    ...(failed === undefined ? {} : { failure: failed.reason }),
  };
}

function tokenIn(text: string, { secret, namespace }: { readonly secret: string; readonly namespace: string }): string {
  const { token, namespaces } = secretMembers(text) ?? {};
  if (namespaces !== undefined && !(Array.isArray(namespaces) && namespaces.includes(namespace)))
    throw refused(secret, `is not for Receivers of the namespace ${namespace}; add it to the secret's "namespaces"`);
  if (typeof token === "string" && token !== "") return token;
  throw refused(secret, `has no "token" that is not empty: ${putSecret(secret, { token: "<what the sender knows>" })}`);
}

function refused(secret: string, what: string): StarlingError {
  return new StarlingError(`secret ${secret} ${what}`, { code: otherCode("InvalidSecret"), retry: "permanent" });
}
