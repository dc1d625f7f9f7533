import * as z from "zod";
import { github } from "#functions/webhook/providers/github.ts";
import { readPackage } from "#functions/webhook/providers/github-package.ts";
import {
  address,
  type BodyReader,
  type Provider,
  pushedTag,
  readBody,
  type WebhookRequest,
} from "#functions/webhook/providers/provider.ts";
import { isSentSecret, isSigned } from "#functions/webhook/sender-proof.ts";
import { jsonOf } from "#shared/base/json-of.ts";

/**
 * Whether the URL has the token that one of the secrets makes of the Receiver's id. It is for registries that sign
 * nothing: the token proves a sender to this Receiver alone, and the secret stays unknown to those who see the URL.
 */
function hasToken({ receiver = "", token }: WebhookRequest, secrets: readonly string[]): boolean {
  return isSigned({ body: Buffer.from(receiver), header: token, prefix: "" }, secrets);
}

function sendsSecret({ headers }: WebhookRequest, secrets: readonly string[]): boolean {
  return isSentSecret(headers.authorization, secrets);
}

const dockerHubPush = z.object({
  push_data: z.object({ tag: pushedTag }),
  repository: z.object({ repo_name: address.min(1) }),
});

/** The names under which people write Docker Hub. */
const dockerHubHosts = ["docker.io", "registry-1.docker.io", "index.docker.io"];

export const dockerHub: Provider = {
  isGenuine: hasToken,
  read(request) {
    const push = readBody(dockerHubPush, request);
    if (push === undefined) return undefined;
    const { repo_name: name } = push.repository;
    const names = [name, ...(name.startsWith("library/") ? [name.slice("library/".length)] : [])];
    return {
      urls: dockerHubHosts.flatMap((host) => names.map((one) => `oci://${host}/${one}`)),
      tags: [push.push_data.tag],
    };
  },
};

const quayPush = z.object({ docker_url: address.min(1), updated_tags: z.array(pushedTag).max(1000) });

export const quay: Provider = {
  isGenuine: hasToken,
  read(request) {
    const push = readBody(quayPush, request);
    return push && { urls: [`oci://${push.docker_url}`], tags: push.updated_tags };
  },
};

const acrEvent = z.object({ action: z.string() });
const acrPush = z.object({
  target: z.object({ repository: address.min(1), tag: pushedTag.optional() }),
  request: z.object({ host: address.min(1) }),
});

/** Azure Container Registry. It can send a header that its owner chooses, so that no token is needed in the URL. */
export const acr: Provider = {
  isGenuine(request, secrets) {
    const sent = sendsSecret(request, secrets);
    return hasToken(request, secrets) || sent;
  },
  read(request) {
    const event = readBody(acrEvent, request);
    if (event === undefined) return undefined;
    if (event.action === "ping") return "ping";
    if (!["push", "delete", "chart_push", "chart_delete"].includes(event.action)) return "other";
    const push = readBody(acrPush, request);
    if (push === undefined) return undefined;
    const { repository, tag } = push.target;
    return { urls: [`oci://${push.request.host}/${repository}`], ...(tag === undefined ? {} : { tags: [tag] }) };
  },
};

const harborEvent = z.object({ type: z.string() });
const harborPush = z.object({
  event_data: z.object({ resources: z.array(z.object({ resource_url: address.min(1) })).max(1000) }),
});

export const harbor: Provider = {
  isGenuine: sendsSecret,
  read(request) {
    const event = readBody(harborEvent, request);
    if (event === undefined) return undefined;
    if (!["PUSH_ARTIFACT", "DELETE_ARTIFACT", "REPLICATION"].includes(event.type)) return "other";
    const resources = readBody(harborPush, request)?.event_data.resources.map(({ resource_url }) => resource_url);
    return resources && { urls: resources.map((url) => `oci://${withoutTag(url)}`), tags: resources.flatMap(tagOf) };
  },
};

/** GitHub's registry alone, with GitHub's signature. */
export const ghcr: Provider = {
  ...github,
  read: (request) => {
    const event = github.eventOf?.(request);
    if (event === "ping") return "ping";
    return event === "package" || event === "registry_package" ? readPackage(request) : "other";
  },
};

const nexusEvent = z.object({
  component: z.object({ format: z.string(), name: address.min(1), version: pushedTag.nullish() }),
});

/**
 * Sonatype Nexus signs with SHA-1 only. Its bodies do not say the address of the registry, so that they are about every
 * Source whose address ends with the name.
 */
export const nexus: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-nexus-webhook-signature"], prefix: "", hash: "sha1" }, secrets),
  eventOf: ({ headers }) => headers["x-nexus-webhook-id"]?.toLowerCase(),
  read(request) {
    if (this.eventOf?.(request) !== "rm:repository:component") return "other";
    const { component } = readBody(nexusEvent, request) ?? {};
    if (component === undefined) return undefined;
    if (component.format !== "docker" && component.format !== "helm") return "other";
    return { names: [component.name], ...(component.version == null ? {} : { tags: [component.version] }) };
  },
};

const pubsubMessage = z.object({ message: z.object({ data: z.base64().max(20_000).default("") }) });
const imageEvent = z.object({
  action: z.enum(["INSERT", "DELETE"]),
  digest: address.min(1).optional(),
  tag: address.min(1).optional(),
});

/**
 * Google's registries, through a push subscription of Pub/Sub. Pub/Sub sends again for days what it gets no good answer for, so
 * that messages of others in the topic are not followed, and not refused.
 */
export const gcr: BodyReader = {
  read(request) {
    const data = readBody(pubsubMessage, request)?.message.data;
    if (data === undefined) return undefined;
    const event = imageEvent.safeParse(jsonOf(Buffer.from(data, "base64").toString("utf8")));
    const image = event.data?.tag ?? event.data?.digest;
    if (image === undefined) return "other";
    const tags = tagOf(image);
    return { urls: [`oci://${withoutTag(image)}`], ...(tags.length === 0 ? {} : { tags }) };
  },
};

/** `host:443/acme/app:1.0` without its tag or digest. */
function withoutTag(reference: string): string {
  return reference.replace(/@[^/]*$/, "").replace(/:[^/]*$/, "");
}

function tagOf(reference: string): readonly string[] {
  const [, tag] = /:([^/@:]+)$/.exec(reference.replace(/@[^/]*$/, "")) ?? [];
  return tag === undefined ? [] : [tag];
}
