/** The XML of AWS's Query protocol, which STS and CloudFormation use. */
import { randomUUID } from "node:crypto";

/** Elements in their order. A list is a series of `<member>` elements. */
export type QueryValue = string | readonly QueryValue[] | { readonly [name: string]: QueryValue };

export interface QueryAnswer {
  readonly action: string;
  /** The namespace of the service and its version. */
  readonly namespace: string;
  readonly result: Readonly<Record<string, QueryValue>>;
}

export function queryXml({ action, namespace, result }: QueryAnswer): string {
  const metadata = element("ResponseMetadata", { RequestId: randomUUID() });
  return `<${action}Response xmlns="${namespace}">${element(`${action}Result`, result)}${metadata}</${action}Response>`;
}

export function queryErrorXml(
  namespace: string,
  { code, message }: { readonly code: string; readonly message: string },
): string {
  const error = element("Error", { Type: "Sender", Code: code, Message: message });
  return `<ErrorResponse xmlns="${namespace}">${error}${element("RequestId", randomUUID())}</ErrorResponse>`;
}

function element(name: string, value: QueryValue): string {
  return `<${name}>${contentOf(value)}</${name}>`;
}

function contentOf(value: QueryValue): string {
  if (typeof value === "string") return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  if (isList(value)) return value.map((each) => element("member", each)).join("");
  return Object.entries(value)
    .map(([name, each]) => element(name, each))
    .join("");
}

/** `Array.isArray` does not narrow a readonly array. */
function isList(value: QueryValue): value is readonly QueryValue[] {
  return Array.isArray(value);
}
