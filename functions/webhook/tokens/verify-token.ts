import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import type { Clock } from "#shared/base/clock.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { excerptOf } from "#shared/base/excerpt.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";

/** The demands on a token that proves a sender. */
export interface TokenDemand {
  /** Its keys verify the token. */
  readonly issuer: string;
  /** The spellings of the issuer in `iss`. */
  readonly spellings: readonly string[];
  readonly audience: string;
  /** Whether a claim says what it must, by its name. */
  readonly claims: Readonly<Record<string, (value: unknown) => boolean>>;
}

/** Every one of them needs the issuer's private key. With a shared secret or `none`, whoever knows the public key could sign. */
const algorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
const maxTokenChars = 16 * 1024;
/** Clocks differ. */
const toleranceSeconds = 60;
const oldestSeconds = 86_400;

/**
 * Verifies the token of a request. A token proves its sender to everyone who has it until it expires: that is no danger,
 * because what it allows is to ask for a poll.
 * @returns why the token proves nothing, without the token itself; undefined when it proves the sender.
 * @throws StarlingError when the issuer's keys cannot be read.
 */
export async function verifyToken(
  authorization: string | undefined,
  demand: TokenDemand,
  { issuers, clock }: { readonly issuers: IssuerKeys; readonly clock: Clock },
): Promise<string | undefined> {
  if ((authorization ?? "").length > maxTokenChars) return `it has more than ${maxTokenChars} characters`;
  const [, token] = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization ?? "") ?? [];
  if (token === undefined) return "the header Authorization has no signed token after the word Bearer";
  // A token of another issuer makes nobody ask for keys.
  const problem = issuerProblemOf(token, demand);
  if (problem !== undefined) return problem;
  try {
    const { payload } = await jwtVerify(token, keyOf(demand.issuer, issuers), {
      algorithms,
      issuer: [...demand.spellings],
      audience: demand.audience,
      requiredClaims: ["exp"],
      maxTokenAge: oldestSeconds,
      clockTolerance: toleranceSeconds,
      currentDate: clock.now(),
    });
    return claimProblem(payload, demand);
  } catch (error) {
    if (error instanceof errors.JOSEError) return problemOf(error);
    if (error instanceof StarlingError) throw error;
    // The platform refuses a damaged or weak key with errors of its own.
    const message = `the key of ${demand.issuer} that a token names cannot be used: ${excerptOf(errorMessage(error))}`;
    throw new StarlingError(message, { code: otherCode("IssuerInvalid"), retry: "transient", cause: error });
  }
}

function issuerProblemOf(token: string, { spellings }: TokenDemand): string | undefined {
  try {
    const { iss } = decodeJwt(token);
    return spellings.includes(iss ?? "") ? undefined : `its issuer is ${excerptOf(iss)}`;
  } catch {
    return "it is no JSON Web Token";
  }
}

/** The issuer's key that the token names. Nothing else of its header says where a key is. */
function keyOf(issuer: string, issuers: IssuerKeys): JWTVerifyGetKey {
  return async (header, token) => {
    const keys = await issuers.read(issuer);
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return (await issuers.read(issuer, keys))(header, token);
    }
  };
}

/** Whether the pattern matches the whole of a claim that is a text, a truth value or a number. A list never fits. */
export function claimPattern(pattern: string): (value: unknown) => boolean {
  const regex = parseLinearRegex(pattern, { isWhole: true });
  if (typeof regex === "string") return () => false;
  return (value) => {
    if (typeof value === "string") return regex(value);
    return typeof value === "boolean" || Number.isSafeInteger(value) ? regex(String(value)) : false;
  };
}

function claimProblem(payload: JWTPayload, { claims }: TokenDemand): string | undefined {
  for (const [name, fits] of Object.entries(claims)) {
    const { [name]: value } = payload;
    if (!fits(value)) return `its claim ${name} is ${excerptOf(value)}`;
  }
  return undefined;
}

function problemOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return `${error.message}: ${error.claim} is ${excerptOf(error.payload[error.claim])}`;
  return error.message;
}
