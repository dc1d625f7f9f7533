import { generate } from "selfsigned";
import type { TlsIdentity } from "#local/cluster/state-files.ts";

const validDays = 3_650;

/** A self-signed certificate for 127.0.0.1 and localhost, which is its own authority. */
export async function createTlsIdentity(): Promise<TlsIdentity> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "starling-local-clusters" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notAfterDate: new Date(Date.now() + validDays * 86_400_000),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 7, ip: "127.0.0.1" },
          { type: 2, value: "localhost" },
        ],
      },
    ],
  });
  return { key, cert };
}
