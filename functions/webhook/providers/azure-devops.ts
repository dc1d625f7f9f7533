import * as z from "zod";
import { address, type Provider, readBody, referenceName } from "#functions/webhook/providers/provider.ts";
import { isBasicPassword } from "#functions/webhook/sender-proof.ts";
import { defined } from "#shared/base/defined.ts";

const serviceHook = z.object({ eventType: z.string() });

const pushEvent = z.object({
  resource: z.object({
    refUpdates: z.array(z.object({ name: referenceName })),
    repository: z.object({ remoteUrl: address, defaultBranch: referenceName.nullish() }),
  }),
});

/** Azure DevOps signs nothing: its service hooks send a name and a password, which is the secret. */
export const azureDevops: Provider = {
  isGenuine: ({ headers }, secrets) => isBasicPassword(headers.authorization, secrets),
  read(request) {
    const hook = readBody(serviceHook, request);
    if (hook === undefined) return undefined;
    if (hook.eventType !== "git.push") return "other";
    const { resource } = readBody(pushEvent, request) ?? {};
    if (resource === undefined) return undefined;
    const { remoteUrl, defaultBranch } = resource.repository;
    return {
      urls: addressesOf(remoteUrl),
      refs: resource.refUpdates.map(({ name }) => name),
      ...defined({ defaultBranch: defaultBranch?.replace(/^refs\/heads\//, "") }),
    };
  },
};

/** An organization has two hosts, and a hook names the one under which the organization was made. */
function addressesOf(remoteUrl: string): readonly string[] {
  if (!URL.canParse(remoteUrl)) return [];
  const { hostname, pathname } = new URL(remoteUrl);
  const former = /^([^.]+)\.visualstudio\.com$/.exec(hostname)?.[1];
  const path = former === undefined ? pathname : `/${former}${pathname.replace(/^\/DefaultCollection(?=\/)/i, "")}`;
  const [, organization, rest] = /^\/([^/]+)(\/.+)$/.exec(path) ?? [];
  if ((former === undefined && hostname !== "dev.azure.com") || organization === undefined) return [remoteUrl];
  const other = `https://${organization}.visualstudio.com`;
  return [`https://dev.azure.com${path}`, `${other}${rest}`, `${other}/DefaultCollection${rest}`];
}
