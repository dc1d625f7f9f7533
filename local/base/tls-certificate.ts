import { randomBytes } from "node:crypto";
import { generate } from "selfsigned";

/** A key and its certificate in PEM. For a self-signed pair, `cert` is also the CA that clients must trust. */
export interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** A state folder keeps the certificate, and a start may read it years later. */
const validDays = 3_650;
const dayMs = 86_400_000;
const algorithm = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** A client that trusts several authorities finds one by its name, so every name is unique. */
function newName() {
  return [{ name: "commonName", value: `starling-local-${randomBytes(8).toString("hex")}` }];
}

function serverOf(names: readonly string[], client: "client too" | "no client" = "no client") {
  const dnsNames = ["localhost", ...names].map((value) => ({ type: 2, value }) as const);
  const addresses = ["127.0.0.1", "::1"].map((ip) => ({ type: 7, ip }) as const);
  return [
    { name: "extKeyUsage" as const, serverAuth: true, clientAuth: client === "client too" },
    { name: "subjectAltName" as const, altNames: [...dnsNames, ...addresses] },
  ];
}

/** A self-signed certificate for `localhost`, 127.0.0.1 and ::1. @param names - additional DNS names. */
export async function createTlsCertificate(names: readonly string[] = []): Promise<TlsCertificate> {
  return selfSigned(serverOf(names));
}

/** A certificate that both a server and its clients show. The server accepts no other client. */
export async function createMutualTlsCertificate(): Promise<TlsCertificate> {
  return selfSigned(serverOf([], "client too"));
}

async function selfSigned(purposes: ReturnType<typeof serverOf>): Promise<TlsCertificate> {
  const { private: key, cert } = await generate(newName(), {
    ...algorithm,
    notAfterDate: new Date(Date.now() + validDays * dayMs),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      ...purposes,
    ],
  });
  return { key, cert };
}
