import { randomBytes } from "node:crypto";
import { generate } from "selfsigned";

/** A key and its certificate in PEM. For a self-signed pair, `cert` is also the CA that clients must trust. */
export interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** State files keep the certificate, and a start may read them years later. */
const validDays = 3_650;
const dayMs = 86_400_000;
const algorithm = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

const ofServer = [
  { name: "extKeyUsage" as const, serverAuth: true, clientAuth: false },
  {
    name: "subjectAltName" as const,
    altNames: [
      { type: 2, value: "localhost" } as const,
      ...["127.0.0.1", "::1"].map((ip) => ({ type: 7, ip }) as const),
    ],
  },
];

/** A client that trusts several authorities finds one by its name, so every name is unique. */
function newName() {
  return [{ name: "commonName", value: `embedded-apiserver-${randomBytes(8).toString("hex")}` }];
}

/** A self-signed certificate for servers on this machine. */
export async function createTlsCertificate(): Promise<TlsCertificate> {
  const { private: key, cert } = await generate(newName(), {
    ...algorithm,
    notAfterDate: new Date(Date.now() + validDays * dayMs),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      ...ofServer,
    ],
  });
  return { key, cert };
}

/** A certificate for the same servers, from the same authority, that expired yesterday. */
export async function expiredTlsCertificate(authority: TlsCertificate): Promise<TlsCertificate> {
  const { private: key, cert } = await generate(newName(), {
    ...algorithm,
    ca: authority,
    notBeforeDate: new Date(Date.now() - 30 * dayMs),
    notAfterDate: new Date(Date.now() - dayMs),
    extensions: [{ name: "basicConstraints", cA: false, critical: true }, ...ofServer],
  });
  return { key, cert };
}
