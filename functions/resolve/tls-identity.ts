/** The TLS part of a secret: a client's certificate with its key, and the authority of a private server. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { defined } from "#shared/base/defined.ts";
import type { TlsIdentity } from "#shared/ports.ts";

type Members = Readonly<Record<string, unknown>>;

const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * @returns undefined when the secret has no such part, or what is wrong with it. A problem never repeats a value.
 */
export function tlsIdentity(members: Members, now: Date): TlsIdentity | undefined | string {
  const { certificate, privateKey, ca } = members;
  if (ca !== undefined && certificatesIn(ca) === undefined) {
    return '"ca" is no certificate in PEM; write the file of the authority there, with its line ends as \\n';
  }
  if (certificate === undefined && privateKey === undefined) {
    return ca === undefined ? undefined : { ca: String(ca) };
  }
  if (certificate === undefined || privateKey === undefined) {
    const [has, lacks] = certificate === undefined ? ["privateKey", "certificate"] : ["certificate", "privateKey"];
    return `"${has}" stands there without "${lacks}"; write both, or none`;
  }
  const [leaf] = certificatesIn(certificate) ?? [];
  if (leaf === undefined)
    return '"certificate" is no certificate in PEM; write its file there, with its line ends as \\n';
  const key = keyIn(privateKey);
  if (key === undefined) return '"privateKey" is no private key in PEM without a passphrase';
  if (!leaf.checkPrivateKey(key))
    return '"privateKey" is not the key of "certificate"; write the two files of one pair';
  if (leaf.validToDate <= now) return `"certificate" expired on ${leaf.validToDate.toISOString()}; write a renewed one`;
  if (leaf.validFromDate > now) return `"certificate" is not valid before ${leaf.validFromDate.toISOString()}`;
  return {
    certificate: String(certificate),
    privateKey: String(privateKey),
    ...defined({ ca: ca as string | undefined }),
  };
}

/** The certificates of a PEM file, the client's own first. */
function certificatesIn(text: unknown): readonly X509Certificate[] | undefined {
  const blocks = typeof text === "string" ? text.match(block) : null;
  try {
    return blocks?.map((each) => new X509Certificate(each));
  } catch {
    return undefined;
  }
}

function keyIn(text: unknown): KeyObject | undefined {
  if (typeof text !== "string") return undefined;
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}
