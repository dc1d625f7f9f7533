import { systemClock } from "#shared/adapters/system.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

export interface CutOff {
  readonly verb: "apply" | "delete";
  /** The kind of the object. */
  readonly kind: string;
  readonly path: string;
  /** The deadline of the run. */
  readonly deadline: Date;
}

/**
 * A client that loses the answers of some requests after their effect. At that time the deadline of the run has come.
 */
export function cutOffClient(client: ClusterClient, { verb, kind, path, deadline }: CutOff) {
  let now = new Date();
  const proxy = new Proxy(client, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...given: unknown[]) => {
        const answer: unknown = await Reflect.apply(member, target, given);
        if (name !== verb || Reflect.get(Object(given[0]), "kind") !== kind) return answer;
        now = deadline;
        const facts = { message: "no answer within 24 ms", causes: [], code: "ETIMEDOUT" };
        throw new KubeError({ method: verb === "apply" ? "PATCH" : "DELETE", path, secret: false }, facts);
      };
    },
  });
  return { client: proxy, clock: { ...systemClock, now: () => now } };
}
