import { generate } from "selfsigned";
import type { TlsIdentity } from "#local/cluster/state-files.ts";

const validDays = 3_650;

const dayMs = 86_400_000;
const names = [
  { type: 7, ip: "127.0.0.1" },
  { type: 2, value: "localhost" },
] as const;
const options = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** A self-signed certificate for 127.0.0.1 and localhost, which is its own authority. */
export async function createTlsIdentity(): Promise<TlsIdentity> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "starling-local-clusters" }], {
    ...options,
    notAfterDate: new Date(Date.now() + validDays * dayMs),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [...names] },
    ],
  });
  return { key, cert };
}

/** A certificate for the same addresses, from the same authority, that ended yesterday. */
export async function expiredTlsIdentity(authority: TlsIdentity): Promise<TlsIdentity> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "starling-local-expired" }], {
    ...options,
    ca: authority,
    notBeforeDate: new Date(Date.now() - 30 * dayMs),
    notAfterDate: new Date(Date.now() - dayMs),
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [...names] },
    ],
  });
  return { key, cert };
}
