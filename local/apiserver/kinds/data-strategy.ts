import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type JsonObject, parseJson } from "#apiserver/json.ts";
import { all, immutable, type Strategy, type StrategyContext } from "#apiserver/kinds/strategy.ts";
import { annotationsOf } from "#apiserver/object-fields.ts";
import { goJsonProblem } from "#apiserver/operations/go-json.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const dataKey = /^[-._a-zA-Z0-9]+$/;
const dataKeyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const maxDataBytes = 1024 * 1024;

function keyProblem(key: string): string | undefined {
  if (key.length > 253) return "must be no more than 253 characters";
  if (key === "." || key === "..") return `must not be '${key}'`;
  if (key.startsWith("..")) return "must not start with '..'";
  return dataKey.test(key) ? undefined : dataKeyMessage;
}

function members(object: JsonObject, name: string): [string, string][] {
  const map = object[name];
  return isJsonObject(map) ? Object.entries(map).map(([key, value]) => [key, String(value ?? "")]) : [];
}

function decodedBytes(base64: string): number {
  return Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
}

function keyErrors(object: JsonObject, name: string): FieldError[] {
  return members(object, name).flatMap(([key]) => {
    const problem = keyProblem(key);
    return problem === undefined ? [] : [fieldErrors.invalid(`${name}[${key}]`, key, problem)];
  });
}

function configMapErrors(object: JsonObject): FieldError[] {
  const data = members(object, "data");
  const binary = new Map(members(object, "binaryData"));
  const errors = [...keyErrors(object, "data"), ...keyErrors(object, "binaryData")];
  for (const [key] of data) {
    if (binary.has(key))
      errors.push(fieldErrors.invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
  }
  let bytes = 0;
  for (const [, value] of data) bytes += Buffer.byteLength(value);
  for (const value of binary.values()) bytes += decodedBytes(value);
  // The path of the whole object is empty, and Go prints it as an empty list.
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("[]", maxDataBytes));
  return errors;
}

const requiredKeys: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
};

/** A Secret of this type needs one of these keys. */
const basicAuthKeys = ["username", "password"];

const tokenType = "kubernetes.io/service-account-token";
const accountAnnotation = "kubernetes.io/service-account.name";

/** A Docker configuration must be a JSON object or null. The error does not show its content. */
function dockerErrors(key: string, base64: string): FieldError[] {
  const text = Buffer.from(base64, "base64").toString();
  const problem = goJsonProblem(text) ?? typeProblem(text);
  return problem === undefined ? [] : [fieldErrors.invalid(`data[${key}]`, "<secret contents redacted>", problem)];
}

function typeProblem(text: string): string | undefined {
  const value = parseJson(text);
  if (value === null || isJsonObject(value)) return undefined;
  const what = Array.isArray(value) ? "array" : { boolean: "bool", string: "string" }[String(typeof value)];
  return `json: cannot unmarshal ${what ?? "number"} into Go value of type map[string]interface {}`;
}

function secretErrors(object: JsonObject): FieldError[] {
  const data = new Map(members(object, "data"));
  const errors = keyErrors(object, "data");
  const type = String(object.type);
  for (const key of requiredKeys[type] ?? []) {
    if (!data.has(key)) errors.push(fieldErrors.required(`data[${key}]`));
    else if (type.startsWith("kubernetes.io/dockerc")) errors.push(...dockerErrors(key, data.get(key) ?? ""));
  }
  if (type === "kubernetes.io/ssh-auth" && data.get("ssh-privatekey") === "")
    errors.push(fieldErrors.required("data[ssh-privatekey]"));
  if (type === tokenType && (annotationsOf(object)[accountAnnotation] ?? "") === "")
    errors.push(fieldErrors.required(`metadata.annotations[${accountAnnotation}]`));
  if (type === "kubernetes.io/basic-auth" && !basicAuthKeys.some((key) => data.has(key))) {
    errors.push(...basicAuthKeys.map((key) => fieldErrors.required(`data[${key}]`)));
  }
  let bytes = 0;
  for (const value of data.values()) bytes += decodedBytes(value);
  if (bytes > maxDataBytes) errors.push(fieldErrors.tooLong("data", maxDataBytes));
  return errors;
}

function immutableData(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined) return [];
  const errors = live.type === object.type ? [] : [immutable("type", object.type)];
  if (live.immutable !== true) return errors;
  const detail = "field is immutable when `immutable` is set";
  if (object.immutable !== true) errors.push(fieldErrors.forbidden("immutable", detail));
  for (const name of ["data", "binaryData"]) {
    if (!deepEqual(object[name], live[name])) errors.push(fieldErrors.forbidden(name, detail));
  }
  return errors;
}

export const configMapStrategy: Strategy = { validate: all(immutableData, configMapErrors) };
export const secretStrategy: Strategy = { validate: all(immutableData, secretErrors) };
