import { isIP } from "node:net";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { labelSelectorErrors } from "#apiserver/kinds/label-selector.ts";
import { isPort, portNameProblems, portRange } from "#apiserver/kinds/port-validation.ts";
import type { Strategy } from "#apiserver/kinds/strategy.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const { forbidden, invalid, required, unsupported } = fieldErrors;
const protocols = ["TCP", "UDP", "SCTP"];
const directions = ["Ingress", "Egress"];

function policyErrors(object: JsonObject): FieldError[] {
  const types = listAt(object, "spec", "policyTypes");
  const errors = labelSelectorErrors(valueAt(object, "spec", "podSelector"), "spec.podSelector");
  for (const [list, peers] of [
    ["ingress", "from"],
    ["egress", "to"],
  ] as const) {
    for (const [index, rule] of listAt(object, "spec", list).entries()) {
      const at = `spec.${list}[${index}]`;
      errors.push(...listAt(rule, "ports").flatMap((port, each) => portErrors(port, `${at}.ports[${each}]`)));
      errors.push(...listAt(rule, peers).flatMap((peer, each) => peerErrors(peer, `${at}.${peers}[${each}]`)));
    }
  }
  if (types.length > directions.length)
    return [...errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")];
  const unknown = types.flatMap((type, index) =>
    directions.includes(String(type)) ? [] : [unsupported(`spec.policyTypes[${index}]`, type, directions)],
  );
  return [...errors, ...unknown];
}

function portErrors(port: Json, at: string): FieldError[] {
  const protocol = stringAt(port, "protocol");
  const number = valueAt(port, "port");
  const end = valueAt(port, "endPort");
  const errors: FieldError[] = [];
  if (protocol !== undefined && !protocols.includes(protocol))
    errors.push(unsupported(`${at}.protocol`, protocol, protocols));
  if (number === undefined) {
    return end === undefined
      ? errors
      : [...errors, invalid(`${at}.endPort`, end, "may not be specified when `port` is not specified")];
  }
  if (typeof number === "string") {
    const detail = "may not be specified when `port` is non-numeric";
    if (end !== undefined) errors.push(invalid(`${at}.endPort`, end, detail));
    return [...errors, ...portNameProblems(number).map((problem) => invalid(`${at}.port`, number, problem))];
  }
  if (!isPort(number)) errors.push(invalid(`${at}.port`, number, portRange));
  if (typeof end !== "number") return errors;
  if (end < Number(number)) errors.push(invalid(`${at}.endPort`, number, "must be greater than or equal to `port`"));
  return isPort(end) ? errors : [...errors, invalid(`${at}.endPort`, end, portRange)];
}

function peerErrors(peer: Json, at: string): FieldError[] {
  const block = valueAt(peer, "ipBlock");
  const selectors = ["podSelector", "namespaceSelector"].filter((key) => valueAt(peer, key) !== undefined);
  const errors = selectors.flatMap((key) => labelSelectorErrors(valueAt(peer, key), `${at}.${key}`));
  if (isJsonObject(block)) errors.push(...blockErrors(block, `${at}.ipBlock`));
  if (!isJsonObject(block) && selectors.length === 0) return [...errors, required(at, "must specify a peer")];
  if (isJsonObject(block) && selectors.length > 0)
    return [...errors, forbidden(at, "may not specify both ipBlock and another peer")];
  return errors;
}

function blockErrors(block: JsonObject, at: string): FieldError[] {
  const cidr = stringAt(block, "cidr") ?? "";
  if (cidr === "") return [required(`${at}.cidr`)];
  const errors = cidrErrors(cidr, `${at}.cidr`);
  const whole = parseCidr(cidr);
  if (whole === undefined) return errors;
  for (const [index, each] of listAt(block, "except").entries()) {
    const field = `${at}.except[${index}]`;
    errors.push(...cidrErrors(String(each), field));
    const part = parseCidr(String(each));
    if (part !== undefined && !isStrictlyWithin(part, whole))
      errors.push(invalid(field, each, "must be a strict subset of `cidr`"));
  }
  return errors;
}

interface Cidr {
  readonly family: 4 | 6;
  readonly bits: bigint;
  readonly prefix: number;
  /** The number of bits of an address. */
  readonly width: number;
}

/** The errors of IsValidCIDR, in its order. */
function cidrErrors(text: string, field: string): FieldError[] {
  const cidr = parseCidr(text);
  if (cidr === undefined)
    return [invalid(field, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")];
  if (cidr.family === 4 && /(^|[./])0\d/.test(text))
    return [invalid(field, text, "must not have leading 0s in IP or prefix length")];
  if (cidr.family === 6 && /\/0\d/.test(text))
    return [invalid(field, text, "must not have leading 0s in IP or prefix length")];
  if (cidr.family === 6 && cidr.bits >> 32n === 0xffffn)
    return [invalid(field, text, "must not have an IPv4-mapped IPv6 address")];
  const host = (1n << BigInt(cidr.width - cidr.prefix)) - 1n;
  return (cidr.bits & host) === 0n ? [] : [invalid(field, text, "must not have bits set beyond the prefix length")];
}

/** Accepts leading zeros, because a server accepts them in stored objects of older servers. */
function parseCidr(text: string): Cidr | undefined {
  const [address = "", length = "", ...more] = text.split("/");
  if (more.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  const plain = /^[\d.]+$/.test(address) ? address.replaceAll(/(^|\.)0+(?=\d)/g, "$1") : address;
  const family = isIP(plain);
  const width = family === 4 ? 32 : 128;
  if ((family !== 4 && family !== 6) || plain.includes("%") || Number(length) > width) return undefined;
  return { family, width, prefix: Number(length), bits: family === 4 ? bits4(plain) : bits6(plain) };
}

function bits4(address: string): bigint {
  return address.split(".").reduce((bits, octet) => bits * 256n + BigInt(octet), 0n);
}

function bits6(address: string): bigint {
  const dotted = /[\d.]+$/.exec(address)?.[0] ?? "";
  const low = dotted.includes(".") ? bits4(dotted) : undefined;
  const hex =
    low === undefined
      ? address
      : `${address.slice(0, -dotted.length)}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = "", tail] = hex.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  const after = groups(tail ?? "");
  const before = groups(head);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].reduce((bits, group) => bits * 65_536n + BigInt(`0x${group}`), 0n);
}

function isStrictlyWithin(part: Cidr, whole: Cidr): boolean {
  const drop = BigInt(whole.width - whole.prefix);
  return part.family === whole.family && part.prefix > whole.prefix && part.bits >> drop === whole.bits >> drop;
}

export const networkPolicyStrategy: Strategy = { validate: policyErrors };
