import { errorMessage } from "#shared/base/errors.ts";

/** The remedy of an error about a certificate, to be put behind its reason; empty for all other errors. */
export function certificateHint(error: unknown): string {
  const isAuthority = /certificate|self.signed|CERT_/i.test(
    `${errorMessage(error)} ${(error as { code?: string }).code}`,
  );
  return isAuthority ? "; ask the operator to trust the certificate of its authority" : "";
}
