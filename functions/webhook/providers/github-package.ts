import * as z from "zod";
import { address, type Push, pushedTag, readBody, type WebhookRequest } from "#functions/webhook/providers/provider.ts";

const published = z.object({
  name: address.min(1),
  namespace: address.min(1),
  package_type: z.string(),
  package_version: z
    .object({ container_metadata: z.object({ tag: z.object({ name: z.string().max(128) }) }).nullish() })
    .nullish(),
});
/** Two events of GitHub have the same content under two names. */
const packageEvent = z.object({ package: published.optional(), registry_package: published.optional() });

/** A package in GitHub's registry of containers. Without a tag, any tag of it may have changed. */
export function readPackage(request: WebhookRequest): Push | "other" | undefined {
  const event = readBody(packageEvent, request);
  const found = event?.package ?? event?.registry_package;
  if (found === undefined) return undefined;
  if (found.package_type.toLowerCase() !== "container") return "other";
  const tag = pushedTag.safeParse(found.package_version?.container_metadata?.tag.name);
  const urls = [`oci://ghcr.io/${found.namespace}/${found.name}`];
  return tag.success ? { urls, tags: [tag.data] } : { urls };
}
