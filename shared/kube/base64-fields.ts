import { isJsonObject, type Json } from "#shared/base/json.ts";
import { listAt, type ManifestObject, valueAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

/** The values of an object that must be base64, by their paths. */
type BytesOf = (object: ManifestObject) => readonly (readonly [string, Json | undefined])[];

const membersOf =
  (field: string): BytesOf =>
  (object) => {
    const members = object[field];
    return isJsonObject(members) ? Object.entries(members).map(([key, value]) => [`${field}.${key}`, value]) : [];
  };
const fieldAt =
  (...path: readonly string[]): BytesOf =>
  (object) => [[path.join("."), valueAt(object, ...path)]];
const webhooks: BytesOf = (object) =>
  listAt(object, "webhooks").map((webhook, index) => [
    `webhooks[${index}].clientConfig.caBundle`,
    valueAt(webhook, "clientConfig", "caBundle"),
  ]);

/** By group and kind. */
const bytes: Readonly<Record<string, BytesOf>> = {
  "/Secret": membersOf("data"),
  "/ConfigMap": membersOf("binaryData"),
  "admissionregistration.k8s.io/MutatingWebhookConfiguration": webhooks,
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration": webhooks,
  "apiextensions.k8s.io/CustomResourceDefinition": fieldAt("spec", "conversion", "webhook", "clientConfig", "caBundle"),
  "apiregistration.k8s.io/APIService": fieldAt("spec", "caBundle"),
  "certificates.k8s.io/CertificateSigningRequest": fieldAt("spec", "request"),
};

/** The paths of the values that must be base64 and are not. The server names only the first wrong byte. */
export function notBase64(object: ManifestObject): readonly string[] {
  const values = bytes[`${groupOf(object.apiVersion)}/${object.kind}`]?.(object) ?? [];
  return values.flatMap(([path, value]) => (isBase64(value) ? [] : [path]));
}

/** The rules of Go's decoder: padding is required, and line breaks are allowed anywhere. */
function isBase64(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== "string") return false;
  const plain = value.replaceAll(/[\r\n]/g, "");
  return plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain);
}
