import type { ClusterClient } from "#shared/domain/cluster-client.ts";

/**
 * The client, asking `permit` before every request that may write: whatever the engine does, this is the door it goes
 * through. What `permit` throws reaches whoever wanted to write.
 */
export function guardedClient(client: ClusterClient, permit: () => Promise<void>): ClusterClient {
  return {
    serverVersion: () => client.serverVersion(),
    lookup: (query) => client.lookup(query),
    listableKinds: () => client.listableKinds(),
    forgetKinds: () => client.forgetKinds(),
    get: (kind, key, options) => client.get(kind, key, options),
    list: (kind, query) => client.list(kind, query),
    async apply(kind, object, options) {
      await permit();
      return client.apply(kind, object, options);
    },
    async create(kind, object) {
      await permit();
      return client.create(kind, object);
    },
    async replace(kind, object) {
      await permit();
      return client.replace(kind, object);
    },
    async patch(kind, key, operations) {
      await permit();
      return client.patch(kind, key, operations);
    },
    async delete(kind, key, precondition) {
      await permit();
      return client.delete(kind, key, precondition);
    },
  };
}
