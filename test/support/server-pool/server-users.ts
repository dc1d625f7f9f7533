import type { KubeUser } from "#local/clusters/kube-apiserver.ts";

/** Whom the servers of the pool know beside the administrator: she may do nothing until somebody lets her. */
export const serverUsers: readonly KubeUser[] = [{ name: "alice", groups: ["dev"] }];
