import { generate } from "selfsigned";

/** PEM texts of a key and its self-signed certificate; `cert` is also the CA that a client has to trust. */
export interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate for servers on this machine: `localhost`, 127.0.0.1 and ::1, valid for a year. */
export async function createTlsCertificate(): Promise<TlsCertificate> {
  const made = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
          { type: 7, ip: "::1" },
        ],
      },
    ],
  });
  return { key: made.private, cert: made.cert };
}
