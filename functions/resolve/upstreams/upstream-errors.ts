import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

/** An error that the same question would meet again. */
export function upstreamError(code: ErrorCode, message: string, cause?: unknown): StarlingError {
  return new StarlingError(message, { code, retry: "permanent", cause });
}

export interface RefusedRequest {
  /** What was asked for: a URL, or a thing in it. */
  readonly what: string;
  readonly status: number;
  /** Field of the upstream: `spec.archive`. */
  readonly at: string;
  readonly hasCredentials: boolean;
}

/** The meaning of an answer that is not 200. */
export function refusedRequest({ what, status, at, hasCredentials }: RefusedRequest): StarlingError {
  if (status === 401 || status === 403) {
    const remedy = hasCredentials
      ? "the credentials are wrong or may not read it; renew the secret"
      : `it needs credentials, or does not exist; set ${at}.credentials`;
    return upstreamError("AuthenticationFailed", `${what}: access is refused (HTTP ${status}): ${remedy}`);
  }
  if (status === 404 || status === 410) {
    return upstreamError("UpstreamNotFound", `${what} was not found (HTTP ${status}): correct ${at}`);
  }
  const message = `${what}: the server answers HTTP ${status}; if that goes on, ask who runs it`;
  return new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
}
