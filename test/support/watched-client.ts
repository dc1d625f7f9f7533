import type { ClusterClient, WritePermit } from "#shared/kube/cluster-client.ts";

export interface ClientCall {
  readonly method: string;
  /** The name of the call's object or kind, if the call has one: `c`, `configmaps`. */
  readonly name: string;
}

const writing = new Set(["apply", "create", "replace", "patch", "delete"]);

/** A client that tells of each call before it is made, and waits until it was heard; of writes only those that may be. */
export function watchedClient(client: ClusterClient, hear: (call: ClientCall) => Promise<void>): ClusterClient {
  return new Proxy(client, {
    get(inner, method: keyof ClusterClient) {
      if (method === "guardedBy") {
        return (permit: WritePermit) =>
          watchedClient(inner.guardedBy(permit), async (call) => {
            if (isWrite(call)) await permit();
            await hear(call);
          });
      }
      const member = inner[method] as ((...args: unknown[]) => unknown) | undefined;
      // A promise that resolves to it asks for `then`.
      if (member === undefined) return undefined;
      return async (...args: unknown[]) => {
        await hear({ method, name: nameIn(args) });
        return member.apply(inner, args);
      };
    },
  });
}

export function isWrite({ method }: ClientCall): boolean {
  return writing.has(method);
}

function nameIn([kind, about]: readonly unknown[]): string {
  const { metadata, name } = (about ?? {}) as { readonly metadata?: { readonly name: string }; readonly name?: string };
  return metadata?.name ?? name ?? (kind as { readonly plural?: string } | undefined)?.plural ?? "";
}
