import { systemClock } from "#shared/adapters/system.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

export interface CutOff {
  readonly verb: "apply" | "delete";
  /** Of the object, as the client is given it. */
  readonly kind: string;
  readonly path: string;
  /** The run's own. */
  readonly deadline: Date;
}

/** A client whose requests of one kind take effect while their answer is cut off: by then it is the run's deadline. */
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
