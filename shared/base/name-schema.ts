import * as z from "zod";

/** RFC 1123 label, the rule of Kubernetes' namespaces. */
export const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const nameRule = "must be 1 to 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit";

export const nameSchema = z.string().regex(dnsLabel, nameRule);
