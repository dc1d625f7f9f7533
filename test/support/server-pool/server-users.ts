import type { KubeUser } from "#local/clusters/kube-apiserver.ts";

/** The users of the pool's servers besides the administrator. They have no permissions at first. */
export const serverUsers: readonly KubeUser[] = [{ name: "alice", groups: ["dev"] }];
