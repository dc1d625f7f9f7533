import { answerLimits } from "#shared/adapters/kube/answer-budget.ts";
import type { KubeSender } from "#shared/adapters/kube/kube-sender.ts";
import { type Json, type JsonObject, stringifyJson } from "#shared/base/json.ts";
import { listAt, valueAt } from "#shared/kube/kube-object.ts";

/** One operation that may be allowed. Without a namespace, it means all namespaces. */
export interface Deed {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

export interface KnownRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames: readonly string[];
}

/** Asks the server what the caller is allowed to do. It stores nothing. */
export class AccessReviews {
  readonly #sender: KubeSender;

  constructor(sender: KubeSender) {
    this.#sender = sender;
  }

  /** @throws KubeError */
  async isAllowed({ verb, group, resource, namespace, name }: Deed): Promise<boolean> {
    const named = { ...(namespace === undefined ? {} : { namespace }), ...(name === undefined ? {} : { name }) };
    const spec = { resourceAttributes: { verb, group, resource, ...named } };
    return valueAt(await this.#review("SelfSubjectAccessReview", spec), "status", "allowed") === true;
  }

  /**
   * All permissions in a namespace, in one answer. The answer is incomplete when an authorizer cannot list its
   * permissions, such as that of EKS's access policies.
   * @throws KubeError
   */
  async rulesIn(namespace: string): Promise<readonly KnownRule[]> {
    const answer = await this.#review("SelfSubjectRulesReview", { namespace });
    return listAt(answer, "status", "resourceRules").map((rule) => ({
      apiGroups: textsAt(rule, "apiGroups"),
      resources: textsAt(rule, "resources"),
      verbs: textsAt(rule, "verbs"),
      resourceNames: textsAt(rule, "resourceNames"),
    }));
  }

  async #review(kind: "SelfSubjectAccessReview" | "SelfSubjectRulesReview", spec: JsonObject): Promise<Json> {
    const { body } = await this.#sender.read({
      method: "POST",
      path: `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`,
      contentType: "application/json",
      body: stringifyJson({ apiVersion: "authorization.k8s.io/v1", kind, spec }),
      limit: answerLimits.object,
    });
    return body;
  }
}

function textsAt(rule: Json, field: string): readonly string[] {
  return listAt(rule, field).filter((text) => typeof text === "string");
}
