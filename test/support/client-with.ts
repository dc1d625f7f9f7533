import type { ClusterClient, WritePermit } from "#shared/kube/cluster-client.ts";

/** The client, with some of its methods replaced, also where it asks before it writes. */
export function clientWith(client: ClusterClient, methods: Partial<ClusterClient>): ClusterClient {
  return new Proxy(client, {
    get(inner, name) {
      if (name === "guardedBy") return (permit: WritePermit) => clientWith(inner.guardedBy(permit), methods);
      const member: unknown = Reflect.get(methods, name) ?? Reflect.get(inner, name);
      return typeof member === "function" ? member.bind(inner) : member;
    },
  });
}
