import { errorMessage } from "#shared/base/errors.ts";

/** The remedy of an error about a certificate, to be put behind its reason; empty for all other errors. */
export function certificateHint(error: unknown): string {
  const isAuthority = /certificate|self.signed|CERT_/i.test(
    `${errorMessage(error)} ${(error as { code?: string }).code}`,
  );
  return isAuthority
    ? '; ask the operator to trust the certificate of its authority, or write that into "ca" of the secret'
    : "";
}

/** Whether the server ended the handshake because of the client's certificate, or because the client showed none. */
export function isCertificateRefused(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return (
    typeof code === "string" &&
    /^ERR_SSL_.*ALERT_(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_[A-Z_]+|UNKNOWN_CA|ACCESS_DENIED)$/.test(
      code,
    )
  );
}
