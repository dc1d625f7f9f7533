import { X509Certificate } from "node:crypto";

/** The certificates that a connection trusts instead of the public authorities. */
export interface CertificateAuthority {
  /** At least one. */
  readonly certificates: readonly X509Certificate[];
}

/** Why a text cannot be read, and what to write instead. */
export interface AuthorityProblem {
  readonly problem: string;
}

const expected = "the certificates of the cluster's authority, PEM in base64 as in a kubeconfig";
const begin = "-----BEGIN ";

/**
 * Reads `caData`. An unreadable text is refused and not ignored: a connection without its own authority trusts every
 * public one, which the author of `caData` did not want.
 */
export function readAuthority(caData: string): CertificateAuthority | AuthorityProblem {
  if (caData.trim() === "") {
    return {
      problem: `is empty, so that the connection would trust the public authorities; give ${expected}, or leave caData out`,
    };
  }
  const pem = pemOf(caData);
  if (pem === undefined) return { problem: `must be base64 on one line: ${expected}` };
  const [, ...blocks] = pem.split(begin);
  const certificates: X509Certificate[] = [];
  for (const block of blocks) {
    const label = block.slice(0, block.indexOf("-----"));
    if (label.endsWith("PRIVATE KEY")) {
      return {
        problem: `contains a private key, which only the server may have: remove it, create a new key, and give ${expected}`,
      };
    }
    const certificate = label === "CERTIFICATE" ? certificateIn(`${begin}${block}`) : undefined;
    if (certificate === undefined) {
      return { problem: `contains a PEM block that is not a readable certificate; give ${expected}` };
    }
    certificates.push(certificate);
  }
  if (certificates.length === 0) return { problem: `contains no PEM certificate; give ${expected}` };
  return { certificates };
}

/** Whether two texts of `caData`, or no text, mean the same certificates. */
export function sameAuthority(one: unknown, other: string | undefined): boolean {
  if (one === other) return true;
  if (typeof one !== "string" || other === undefined) return false;
  const [a, b] = [readAuthority(one), readAuthority(other)];
  return "certificates" in a && "certificates" in b && fingerprintsOf(a) === fingerprintsOf(b);
}

function fingerprintsOf({ certificates }: CertificateAuthority): string {
  return [...new Set(certificates.map(({ fingerprint256 }) => fingerprint256))].sort().join();
}

/** Node's own decoder ignores characters that are not base64. */
function pemOf(caData: string): string | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(caData) || caData.length % 4 !== 0) return undefined;
  return Buffer.from(caData, "base64").toString("latin1");
}

function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
