import type { Json, JsonObject } from "#apiserver/json.ts";
import { stringifyJson } from "#apiserver/json.ts";

/** One problem of an object; `reason` as in `details.causes`. */
export interface Cause {
  readonly reason?: string;
  readonly message: string;
  readonly field?: string;
}

/** An object as messages and details name it. */
export interface Subject {
  readonly group: string;
  /** The plural, or the kind where the real server uses it. */
  readonly kind: string;
  readonly name: string;
}

/** An error answer in the form of a `Status` object. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string | undefined;
  readonly details: JsonObject | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: number,
    message: string,
    options: { reason?: string; details?: JsonObject; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.code = code;
    this.reason = options.reason;
    this.details = options.details;
    this.headers = options.headers ?? {};
  }

  body(): JsonObject {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason === undefined ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

function qualified(subject: Subject): string {
  return subject.group === "" ? subject.kind : `${subject.kind}.${subject.group}`;
}

function detailsOf(subject: Subject, causes: readonly Cause[] = []): JsonObject {
  return {
    ...(subject.name === "" ? {} : { name: subject.name }),
    ...(subject.group === "" ? {} : { group: subject.group }),
    ...(subject.kind === "" ? {} : { kind: subject.kind }),
    ...(causes.length === 0 ? {} : { causes: causes.map((cause) => ({ ...cause })) }),
  };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, message, { reason: "BadRequest" });
}

export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized", { reason: "Unauthorized" });
}

export function forbidden(subject: Subject, why: string, causes: readonly Cause[] = []): StatusError {
  const name = subject.name === "" ? "" : ` ${JSON.stringify(subject.name)}`;
  return new StatusError(403, `${qualified(subject)}${name} is forbidden: ${why}`, {
    reason: "Forbidden",
    details: detailsOf(subject, causes),
  });
}

export function notFound(subject: Subject): StatusError {
  return new StatusError(404, `${qualified(subject)} ${JSON.stringify(subject.name)} not found`, {
    reason: "NotFound",
    details: detailsOf(subject),
  });
}

/** The answer for a path of a served group that names no resource. */
export function noSuchResource(): StatusError {
  return new StatusError(404, "the server could not find the requested resource", { reason: "NotFound", details: {} });
}

export function methodNotAllowed(): StatusError {
  return new StatusError(405, "the server does not allow this method on the requested resource", {
    reason: "MethodNotAllowed",
    details: {},
  });
}

export function alreadyExists(subject: Subject, prefix = ""): StatusError {
  return new StatusError(409, `${prefix}${qualified(subject)} ${JSON.stringify(subject.name)} already exists`, {
    reason: "AlreadyExists",
    details: detailsOf(subject),
  });
}

export const staleVersion =
  "the object has been modified; please apply your changes to the latest version and try again";

export function conflict(subject: Subject, why: string): StatusError {
  return new StatusError(
    409,
    `Operation cannot be fulfilled on ${qualified(subject)} ${JSON.stringify(subject.name)}: ${why}`,
    {
      reason: "Conflict",
      details: detailsOf(subject),
    },
  );
}

/**
 * A field that an apply would change and another manager owns. `detail` names the manager's subresource and version.
 */
export interface FieldConflict {
  readonly manager: string;
  readonly detail: string;
  readonly path: string;
}

function ownerText({ manager, detail }: FieldConflict): string {
  return `${JSON.stringify(manager)}${detail}`;
}

/** 409 with causes of reason `FieldManagerConflict` (structured-merge-diff, Conflicts.Error). */
export function applyConflict(conflicts: readonly FieldConflict[]): StatusError {
  const sorted = [...conflicts].sort((a, b) => (ownerText(a) < ownerText(b) ? -1 : 1));
  const [only] = sorted;
  const causes = sorted.map((entry) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${ownerText(entry)}`,
    field: entry.path,
  }));
  let text = only === undefined ? "" : `conflict with ${ownerText(only)}: ${only.path}`;
  if (sorted.length > 1) {
    const lines: string[] = [];
    let owner = "";
    for (const entry of sorted) {
      if (ownerText(entry) !== owner) lines.push(`conflicts with ${ownerText(entry)}:`);
      owner = ownerText(entry);
      lines.push(`- ${entry.path}`);
    }
    text = lines.join("\n");
  }
  const count = sorted.length === 1 ? "1 conflict" : `${sorted.length} conflicts`;
  return new StatusError(409, `Apply failed with ${count}: ${text}`, { reason: "Conflict", details: { causes } });
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const list = accepted.join(", ");
  return new StatusError(
    415,
    `the body of the request was in an unknown format - accepted media types include: ${list}`,
    {
      reason: "UnsupportedMediaType",
    },
  );
}

/** An error that the server does not classify. */
export function internalError(message: string): StatusError {
  return new StatusError(500, message);
}

/** A problem of one field (`field.Error`). */
export interface FieldError extends Cause {
  readonly field: string;
}

export const fieldErrors = {
  required: (field: string, detail = ""): FieldError => ({
    reason: "FieldValueRequired",
    message: detail === "" ? "Required value" : `Required value: ${detail}`,
    field,
  }),
  invalid: (field: string, value: Json | undefined, detail: string): FieldError => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: ${stringifyJson(value ?? null)}${detail === "" ? "" : `: ${detail}`}`,
    field,
  }),
  typeInvalid: (field: string, value: Json, detail: string): FieldError => ({
    reason: "FieldValueTypeInvalid",
    message: `Invalid value: ${stringifyJson(value)}: ${detail}`,
    field,
  }),
  notFound: (field: string, value: Json): FieldError => ({
    reason: "FieldValueNotFound",
    message: `Not found: ${stringifyJson(value)}`,
    field,
  }),
  forbidden: (field: string, detail: string): FieldError => ({
    reason: "FieldValueForbidden",
    message: `Forbidden: ${detail}`,
    field,
  }),
  duplicate: (field: string, value: Json): FieldError => ({
    reason: "FieldValueDuplicate",
    message: `Duplicate value: ${stringifyJson(value)}`,
    field,
  }),
  unsupported: (field: string, value: Json | undefined, supported: readonly string[]): FieldError => ({
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${stringifyJson(value ?? "")}: supported values: ${supported.map((each) => JSON.stringify(each)).join(", ")}`,
    field,
  }),
  tooLong: (field: string, maxBytes: number): FieldError => ({
    reason: "FieldValueTooLong",
    message: `Too long: may not be more than ${maxBytes} bytes`,
    field,
  }),
  tooMany: (field: string, count: number, max: number): FieldError => ({
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${max} items`,
    field,
  }),
} as const;

/** 422 with one cause per field. */
export function invalid(subject: Subject, errors: readonly FieldError[]): StatusError {
  const texts = [...new Set(errors.map(({ field, message }) => `${field}: ${message}`))];
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return new StatusError(422, `${qualified(subject)} ${JSON.stringify(subject.name)} is invalid: ${text}`, {
    reason: "Invalid",
    details: detailsOf(subject, errors),
  });
}
