import { randomBytes } from "node:crypto";
import { generate } from "selfsigned";

/** PEM texts of a key and its certificate; of one that signed itself, `cert` is also the CA that a client has to trust. */
export interface TlsCertificate {
  readonly key: string;
  readonly cert: string;
}

/** What a machine keeps is there at its next start, years later too. */
const validDays = 3_650;
const dayMs = 86_400_000;
const algorithm = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** A client that trusts several authorities looks for one by its name: no two have the same. */
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

/**
 * A certificate for servers on this machine, which is its own authority: `localhost`, 127.0.0.1 and ::1.
 * @param names - further DNS names that it is for.
 */
export async function createTlsCertificate(names: readonly string[] = []): Promise<TlsCertificate> {
  return selfSigned(serverOf(names));
}

/** The same, to be shown by the clients too of a server that lets in nobody else. */
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
