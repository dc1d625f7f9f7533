/** A signature that was read from a registry; nothing of it is verified. */
export type CosignSignature =
  /** `sha256-<hex>.sig`: the payload is a layer, and the rest are its annotations. */
  | ({ readonly kind: "simple" } & SimpleSignature)
  /** A Sigstore bundle, as JSON. */
  | { readonly kind: "bundle"; readonly bytes: Uint8Array }
  /** @param problem - as a part of a message. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface SimpleSignature {
  readonly payload: Uint8Array;
  /** In base64. */
  readonly signature: string;
  /** PEM; absent when a key signed. */
  readonly certificate?: string;
  /** The answer of Rekor, as JSON. */
  readonly entry?: string;
  /** The answer of a timestamp authority, as JSON. */
  readonly timestamp?: string;
}

/** The result for one signature. */
export type SignatureVerdict =
  | {
      readonly kind: "verified";
      /** `sha256:<hex>` of the key that signed. */
      readonly key: string;
      /** The identity of the certificate, and the service that vouched for it. */
      readonly owner?: string;
    }
  | SignatureRefusal;

export interface SignatureRefusal {
  readonly kind: RefusalKind;
  /** As a part of a message about the signature: `does not fit its content`. */
  readonly problem: string;
}

/** In the order in which they are found out: the later, the nearer was the signature to being verified. */
export const refusalKinds = [
  "unreadable",
  "unknown",
  "not logged",
  "certificate",
  "invalid",
  "other digest",
  "identity",
] as const;
export type RefusalKind = (typeof refusalKinds)[number];
