import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { labelSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { namespacedMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { secretName } from "#shared/fleet/kinds/secret-name.ts";
import { googleTrust, tokenTrust } from "#shared/fleet/kinds/sender-tokens.ts";

/**
 * The kinds of senders, each with the names of the events that it may be asked to follow, in lower case. A kind without
 * names has one event, or does not name its events where a Receiver could choose.
 */
export const providerEvents = {
  github: ["push", "package", "registry_package"],
  gitlab: ["push hook", "tag push hook", "system hook"],
  gitea: ["push", "create", "delete"],
  bitbucket: ["repo:push"],
  "bitbucket-server": ["repo:refs_changed", "mirror:repo_synchronized"],
  azuredevops: [],
  generic: [],
  "generic-oidc": [],
  dockerhub: [],
  quay: [],
  acr: [],
  harbor: [],
  ghcr: ["package", "registry_package"],
  nexus: [],
  gcr: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ProviderName = keyof typeof providerEvents;
/** Each with the field that says which tokens it takes. */
const trustFields = { "generic-oidc": "oidc", gcr: "google" } as const;
/** The kinds whose senders prove themselves by a token. */
export type TokenSender = keyof typeof trustFields;
/** The kinds whose senders know a secret. */
export type SecretSender = Exclude<ProviderName, TokenSender>;
const providers = Object.keys(providerEvents) as readonly ProviderName[];

const selector = labelSelector("is empty and would match every Source of the namespace; name labels or Sources");

const sourceChoice = z.union([nameSchema, z.strictObject({ selector })], {
  error: "must be the name of a Source, or {selector: {matchLabels: {...}}}",
});

const lacking = {
  secrets: "name one secret: without one, no sender could be verified",
  oidc: "it says whose tokens are taken; write oidc: {issuer: ..., audience: ..., claims: {...}}",
  google: "it says whose tokens are taken; write google: {audience: ..., email: ...}",
} as const;

export const receiverSpec = z
  .strictObject({
    provider: z.enum(providers, `must be one of ${providers.join(", ")}`),
    /** Sources of the Receiver's namespace. Only these are polled. */
    sources: boundedList(sourceChoice, 100).min(1, "must name at least one Source"),
    /** Names of one secret, or of two while senders move from one to the other. */
    secrets: boundedList(secretName, 2).min(1, `must ${lacking.secrets}`).optional(),
    /** For `generic-oidc`: the tokens that prove a sender. */
    oidc: tokenTrust.optional(),
    /** For `gcr`: the tokens of Google that prove its Pub/Sub. */
    google: googleTrust.optional(),
    /** Without them, every event that the provider has. */
    events: boundedList(boundedText(100), 20).min(1, "must name one event; leave it out to follow all").optional(),
  })
  .superRefine((spec, context) => {
    const own = trustFieldOf(spec.provider) ?? "secrets";
    if (spec[own] === undefined) context.addIssue({ code: "custom", path: [own], message: lacking[own] });
    for (const field of ["secrets", "oidc", "google"] as const) {
      if (field === own || spec[field] === undefined) continue;
      const message = `proves no sender of ${spec.provider}, which has ${own} instead; remove it`;
      context.addIssue({ code: "custom", path: [field], message });
    }
  })
  .superRefine(({ provider, events = [] }, context) => {
    const known: readonly string[] = providerEvents[provider];
    for (const [index, event] of events.entries()) {
      if (known.includes(event.toLowerCase())) continue;
      const remedy =
        known.length === 0
          ? `${provider} has one kind of event: leave events out`
          : `expected one of ${known.join(", ")}`;
      context.addIssue({
        code: "custom",
        path: ["events", index],
        message: `is no event that wakes a Source; ${remedy}`,
      });
    }
  });

function trustFieldOf(provider: ProviderName): "oidc" | "google" | undefined {
  return isTokenProvider(provider) ? trustFields[provider] : undefined;
}

/** Whether its senders prove themselves by a token, and know no secret. */
export function isTokenProvider(provider: ProviderName): provider is TokenSender {
  return Object.hasOwn(trustFields, provider);
}

export type ReceiverSpec = z.infer<typeof receiverSpec>;

export const receiverDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("Receiver"),
  metadata: namespacedMetadata,
  spec: receiverSpec,
});
