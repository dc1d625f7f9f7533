import type { ClusterClient, WritePermit } from "#shared/kube/cluster-client.ts";

/** A client with some methods replaced. Its own calls before a write use them, too. */
export function clientWith(client: ClusterClient, methods: Partial<ClusterClient>): ClusterClient {
  return new Proxy(client, {
    get(inner, name) {
      if (name === "guardedBy") return (permit: WritePermit) => clientWith(inner.guardedBy(permit), methods);
      const member: unknown = Reflect.get(methods, name) ?? Reflect.get(inner, name);
      return typeof member === "function" ? member.bind(inner) : member;
    },
  });
}
