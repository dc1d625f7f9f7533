import { randomBytes } from "node:crypto";
import { generate } from "selfsigned";

/** PEM texts of a key and its certificate; of one that signed itself, `cert` is also the CA that a client has to trust. */
export interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** State files are there at the next start, years later too. */
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

/** A client that trusts several authorities looks for one by its name: no two have the same. */
function newName() {
  return [{ name: "commonName", value: `embedded-apiserver-${randomBytes(8).toString("hex")}` }];
}

/** A certificate for servers on this machine, which is its own authority. */
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

/** A certificate for the same servers, from the same authority, that ended yesterday. */
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
