/** A private Sigstore: an authority for certificates, a log and a clock that sign, and the root that trusts them. */
import { createHash, generateKeyPairSync, hash, type KeyPairKeyObjectResult } from "node:crypto";
import { text } from "node:stream/consumers";
import { bundleToJSON } from "@sigstore/bundle";
import {
  fulcioHandler,
  initializeCA,
  initializeCTLog,
  initializeTLog,
  initializeTSA,
  rekorHandler,
  tsaHandler,
} from "@sigstore/mock";
import { DSSEBundleBuilder, FulcioSigner, RekorWitness, TSAWitness, type Witness } from "@sigstore/sign";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { signBytes } from "#local/registry/cosign.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";

export interface Identity {
  readonly issuer: string;
  readonly name: string;
}

export interface PrivateSigstore {
  /** The text of its `trusted_root.json`, without the parts that are named. */
  trustedRoot(without?: readonly ("tlogs" | "ctlogs" | "timestampAuthorities")[]): string;
  /** A bundle over a statement. @param by - what proves when it was signed. */
  bundle(statement: string, identity: Identity, by?: readonly ("log" | "clock")[]): Promise<object>;
  /** The annotations of a signature of a payload, as cosign 2 writes them. @param by - as of `bundle`. */
  annotations(payload: Uint8Array, identity: Identity, by?: "log" | "nothing"): Promise<Record<string, string>>;
  /** The member `cosign` of a Source's `verify` that trusts one identity. */
  trustIn(identity: Identity): object;
  stop(): Promise<void>;
}

const keyPair = (): KeyPairKeyObjectResult => generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const issuerExtension = "1.3.6.1.4.1.57264.1.8";
const base64 = (view: ArrayBufferView | Uint8Array) =>
  Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");

const nothing = { statusCode: 404, response: "", contentType: undefined };

interface Entered {
  readonly body: string;
  readonly integratedTime: number;
  readonly logIndex: number;
  readonly logID: string;
  readonly verification: { readonly signedEntryTimestamp: string };
}

interface ProposedEnvelope {
  readonly envelope: string;
  readonly verifiers: readonly string[];
}

/** A log keeps the digests of an envelope instead of the envelope; the mock enters what it is given. */
function asLogged(body: string): string {
  const { kind, apiVersion, spec } = body.startsWith("{") ? JSON.parse(body) : {};
  const proposed: ProposedEnvelope | undefined = kind === "dsse" ? spec.proposedContent : undefined;
  if (proposed === undefined) return body;
  const { payload, signatures } = JSON.parse(proposed.envelope);
  const sha = (value: string | Buffer) => ({ algorithm: "sha256", value: hash("sha256", value, "hex") });
  const [{ sig }] = signatures;
  const kept = {
    envelopeHash: sha(proposed.envelope),
    payloadHash: sha(Buffer.from(payload, "base64")),
    signatures: [{ signature: sig, verifier: proposed.verifiers[0] }],
  };
  return JSON.stringify({ kind, apiVersion, spec: kept });
}

/** The one identity that is trusted, for the verifier itself. */
export function compiledIdentity({ issuer, name }: Identity) {
  const [issuers, names] = [issuer, name].map((text) =>
    parseLinearRegex(text.replaceAll(".", "\\."), { isWhole: true }),
  );
  if (typeof issuers !== "function" || typeof names !== "function") throw new Error(`no identity: ${issuer} ${name}`);
  return { issuer: issuers, subject: names };
}

/** @param logged - the time at which the log and the clock sign. Default: now. */
export async function startSigstore({ logged }: { readonly logged?: Date } = {}): Promise<PrivateSigstore> {
  const ctLog = await initializeCTLog(keyPair());
  const authority = await initializeCA(keyPair(), ctLog);
  const clock = await initializeTSA(keyPair(), logged);
  // The mock writes milliseconds without their last zeros, and readers refuse such a time: one in ten.
  if (logged === undefined)
    Object.assign(clock, { getCurrentTime: () => new Date(Math.floor(Date.now() / 1000) * 1000) });
  const handlers = [fulcioHandler(authority), tsaHandler(clock)];
  const server = await serveOnLoopback(async (request, response) => {
    const handler = handlers.find(({ path }) => request.url?.startsWith(path));
    const body = await text(request);
    const { statusCode, response: answer, contentType } = (await handler?.fn(asLogged(body))) ?? nothing;
    response.writeHead(statusCode, { "content-type": contentType ?? "text/plain" }).end(answer);
  });
  const url = `http://127.0.0.1:${server.port}`;
  const log = await initializeTLog(url, keyPair(), logged);
  handlers.push(rekorHandler(log));
  const validFor = { start: "2020-01-01T00:00:00Z" };
  const logOf = (key: Uint8Array | ArrayBufferView, keyId: string) => ({
    baseUrl: url,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: base64(key), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId },
  });
  const chain = (...certificates: readonly ArrayBufferView[]) => ({
    uri: url,
    certChain: { certificates: certificates.map((each) => ({ rawBytes: base64(each) })) },
    validFor,
  });
  const made: PrivateSigstore = {
    trustedRoot(without = []) {
      const parts = {
        tlogs: [logOf(log.publicKey, createHash("sha256").update(log.publicKey).digest("base64"))],
        ctlogs: [logOf(ctLog.publicKey, base64(ctLog.logID))],
        timestampAuthorities: [chain(clock.intCertificate, clock.rootCertificate)],
      };
      return JSON.stringify({
        mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        certificateAuthorities: [chain(authority.rootCertificate)],
        ...parts,
        ...Object.fromEntries(without.map((part) => [part, []])),
      });
    },
    trustIn({ issuer, name }) {
      const literal = (text: string) => text.replaceAll(".", "\\.");
      return {
        identities: [{ issuer: literal(issuer), subject: literal(name) }],
        trustedRoot: made.trustedRoot(),
      };
    },
    async bundle(statement, { issuer, name }, by = ["log"]) {
      const token = ["{}", JSON.stringify({ iss: issuer, sub: name }), "s"].map((part) =>
        Buffer.from(part).toString("base64url"),
      );
      const signer = new FulcioSigner({
        fulcioBaseURL: url,
        identityProvider: { getToken: async () => token.join(".") },
      });
      const witnesses: Witness[] = by.map((each) =>
        each === "log"
          ? new RekorWitness({ rekorBaseURL: url, entryType: "dsse" })
          : new TSAWitness({ tsaBaseURL: url }),
      );
      const builder = new DSSEBundleBuilder({ signer, witnesses });
      const made = await builder.create({ data: Buffer.from(statement), type: "application/vnd.in-toto+json" });
      return bundleToJSON(made) as object;
    },
    async annotations(payload, { issuer, name }, by = "log") {
      const { publicKey, privateKey } = keyPair();
      const der = await authority.issueCertificate({
        publicKey: publicKey.export({ type: "spki", format: "der" }),
        subjectAltName: name,
        extensions: [{ oid: issuerExtension, value: issuer }],
      });
      const certificate = `-----BEGIN CERTIFICATE-----\n${base64(der)}\n-----END CERTIFICATE-----\n`;
      const signature = signBytes(payload, privateKey).toString("base64");
      const entry = {
        apiVersion: "0.0.1",
        kind: "hashedrekord",
        spec: {
          data: { hash: { algorithm: "sha256", value: hash("sha256", payload, "hex") } },
          signature: { content: signature, publicKey: { content: Buffer.from(certificate).toString("base64") } },
        },
      };
      const [logged] = Object.values((await log.log(entry)) as Record<string, Entered>);
      const { body, integratedTime, logIndex, logID, verification } = logged as Entered;
      const answered = {
        SignedEntryTimestamp: verification.signedEntryTimestamp,
        Payload: { body, integratedTime, logIndex, logID },
      };
      return {
        "dev.cosignproject.cosign/signature": signature,
        "dev.sigstore.cosign/certificate": certificate,
        ...(by === "log" ? { "dev.sigstore.cosign/bundle": JSON.stringify(answered) } : {}),
      };
    },
    stop: () => server.stop(),
  };
  return made;
}
