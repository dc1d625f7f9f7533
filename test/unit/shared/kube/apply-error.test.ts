import { expect, test } from "vitest";
import { type ApplyErrorFacts, classifyApplyError } from "#shared/kube/apply-error.ts";

const cause = (message: string, reason = "FieldValueInvalid") => ({ reason, field: "spec.x", message });
const answer = (status: number, message: string, rest: Partial<ApplyErrorFacts> = {}): ApplyErrorFacts => ({
  status,
  message,
  reason: "R",
  causes: [],
  ...rest,
});
const network = (code: string): ApplyErrorFacts => ({ code, message: code, causes: [] });
const quota =
  'Operation cannot be fulfilled on resourcequotas "q": the object has been modified; please apply your changes to the latest version and try again';

/**
 * Answers, recorded from kube-apiserver 1.36 where it gives them.
 * Each has its class, whether to retry, and whether the outcome is unknown.
 */
const table: readonly (readonly [string, ApplyErrorFacts, string, boolean, boolean])[] = [
  ["connection reset", network("ECONNRESET"), "transient", true, true],
  ["timeout", network("ETIMEDOUT"), "transient", true, true],
  ["temporary DNS failure", network("EAI_AGAIN"), "transient", true, true],
  ["refused", network("ECONNREFUSED"), "unreachable", true, false],
  ["no such host", network("ENOTFOUND"), "unreachable", true, false],
  ["wrong certificate", network("ERR_TLS_CERT_ALTNAME_INVALID"), "unreachable", true, false],
  ["expired certificate", network("CERT_HAS_EXPIRED"), "unreachable", true, false],
  ["answer too large", network("AnswerTooLarge"), "tooLarge", false, false],
  ["list too long", network("ListTooLong"), "tooLarge", false, false],
  ["answers too large", network("AnswersTooLarge"), "tooLarge", false, false],
  ["answer of another server", network("AnswerMalformed"), "malformed", true, true],
  ["401", answer(401, "Unauthorized"), "auth", true, false],
  ["403", answer(403, 'configmaps "a" is forbidden: User "x" cannot patch resource'), "forbidden", false, false],
  [
    "403 in a namespace that goes away",
    answer(403, "unable to create new content in namespace n because it is being terminated", {
      causes: [cause("namespace n is being terminated", "NamespaceTerminating")],
    }),
    "namespace",
    true,
    false,
  ],
  [
    "403 before the ServiceAccount is there",
    answer(403, 'pods "p" is forbidden: error looking up service account n/sa: serviceaccount "sa" not found'),
    "forbidden",
    true,
    false,
  ],
  ["403 over quota", answer(403, 'pods "p" is forbidden: exceeded quota: q'), "forbidden", true, false],
  ["404 namespace", answer(404, 'namespaces "n" not found'), "namespace", true, false],
  ["404 page", { status: 404, message: "", causes: [] }, "noMatch", true, false],
  ["404 resource", answer(404, "the server could not find the requested resource"), "noMatch", true, false],
  ["404 object", answer(404, 'configmaps "a" not found'), "notFound", false, false],
  ["405", answer(405, "the server does not allow this method"), "unsupported", false, false],
  ["415", answer(415, "the body of the request was in an unknown format"), "unsupported", false, false],
  [
    "409 of a uid precondition",
    answer(409, "Operation cannot be fulfilled on ConfigMap: the UID in the precondition (a) does not match"),
    "replaced",
    false,
    false,
  ],
  [
    "409 of an object with a uid that is gone",
    answer(409, 'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid a'),
    "replaced",
    false,
    false,
  ],
  [
    "422 of an object with another uid",
    answer(422, 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "a": field is immutable', {
      causes: [
        { reason: "FieldValueInvalid", field: "metadata.uid", message: 'Invalid value: "a": field is immutable' },
      ],
    }),
    "replaced",
    false,
    false,
  ],
  ["409 of a quota", answer(409, quota), "conflict", true, false],
  ["410", answer(410, "The provided continue parameter is too old"), "expired", true, false],
  ["413", answer(413, "Request entity too large: limit is 3145728"), "tooLarge", false, false],
  ["500 of etcd's limit", answer(500, "etcdserver: request is too large"), "tooLarge", false, false],
  ["429", answer(429, "too many requests"), "throttled", true, false],
  [
    "500 of an unknown field",
    answer(500, "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nope: field not declared in schema"),
    "invalid",
    false,
    false,
  ],
  [
    "500 of duplicate keys",
    answer(500, 'failed to create typed patch object (/s): .spec.items: duplicate entries for key [id="a"]'),
    "invalid",
    false,
    false,
  ],
  [
    "422 of an immutable field",
    answer(422, "is invalid", { causes: [cause("Invalid value: {}: field is immutable")] }),
    "immutable",
    false,
    false,
  ],
  [
    "422 of a StatefulSet",
    answer(422, "is invalid", {
      causes: [cause("Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden")],
    }),
    "immutable",
    false,
    false,
  ],
  [
    "422 of an immutable and an invalid field would be invalid when created again",
    answer(422, "is invalid", { causes: [cause("field is immutable"), cause("must be no more than 63 characters")] }),
    "invalid",
    false,
    false,
  ],
  ["422", answer(422, "is invalid", { causes: [cause("Required value")] }), "invalid", false, false],
  ["400", answer(400, "metadata.managedFields must be nil"), "invalid", false, false],
  [
    "500 of a value that cannot be decoded",
    answer(
      500,
      "failed to convert new object (n/a; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 0",
    ),
    "invalid",
    false,
    false,
  ],
  ["500 of a webhook", answer(500, 'Internal error occurred: failed calling webhook "w"'), "dependency", true, false],
  [
    "500 of managedFields in another version",
    answer(
      500,
      "failed to create manager for existing fields: failed to convert new object (n/a; x/v1) to smd typed: .x",
    ),
    "migrate",
    true,
    false,
  ],
  ["500 of a conversion", answer(500, "conversion webhook for x failed"), "dependency", true, false],
  ["500 of etcd", answer(500, "etcdserver: leader changed"), "transient", true, true],
  ["503", answer(503, "the server is currently unable to handle the request"), "transient", true, true],
  ["504", answer(504, "request timed out"), "transient", true, true],
  ["302", answer(302, ""), "unknown", false, false],
];

test.each(table)("the answer %s is classified", (_name, facts, kind, retryable, outcomeUnknown) => {
  expect(classifyApplyError(facts)).toEqual({ class: kind, retryable, outcomeUnknown });
});
