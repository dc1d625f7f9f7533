import { z } from "zod";
import type { SourceSpec } from "#shared/domain/kinds/source.ts";
import { StarlingError } from "#shared/errors.ts";
import type { GitCredentials, SecretReader } from "#shared/ports.ts";

const basic = z.object({ username: z.string().min(1), password: z.string().min(1) });

/**
 * The credentials a Source names. A secret of the kind `basic` is JSON with `username` and `password`, one of the kind
 * `bearer` is the token itself.
 * @throws StarlingError `SecretNotFound`, or `InvalidCredentials` naming the secret and its form, never its content.
 */
export async function readCredentials(
  wanted: SourceSpec["git"]["credentials"],
  secrets: SecretReader,
): Promise<GitCredentials | undefined> {
  if (wanted === undefined) return undefined;
  const text = (await secrets.read(wanted.secret)).trim();
  if (wanted.kind === "bearer") {
    if (text === "" || /[\s\p{Cc}]/u.test(text)) throw invalid(wanted.secret, "the token itself, and nothing else");
    return { kind: "bearer", token: text };
  }
  const parsed = basic.safeParse(jsonOf(text));
  if (!parsed.success) throw invalid(wanted.secret, 'JSON such as {"username": "...", "password": "..."}');
  return { kind: "basic", ...parsed.data };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(secret: string, form: string): StarlingError {
  return new StarlingError(`secret ${secret} does not have the form spec.git.credentials says: expected ${form}`, {
    code: "InvalidCredentials",
    retry: "permanent",
    data: { secret },
  });
}
