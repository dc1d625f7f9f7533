import { hash } from "node:crypto";
import { canonicalJson } from "#shared/base/json.ts";

/** `sha256:<hex>` of the bytes, or of the UTF-8 text. */
export function sha256(content: string | Uint8Array): string {
  return `sha256:${hash("sha256", content, "hex")}`;
}

/** `sha256:<hex>` of a value; the order of its members does not matter. */
export function digestOf(value: unknown): string {
  return sha256(canonicalJson(value));
}

/** The hexadecimal part of `sha256:<hex>`, as blob keys use it. */
export function hexOf(digest: string): string {
  return digest.slice(digest.indexOf(":") + 1);
}
