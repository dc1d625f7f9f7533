import type { ObjectFailure } from "#shared/kube/engine/object-failure.ts";

/** The server of a kind's group is silent: nothing is known of its objects, which is no absence. */
export class UnavailableKind extends Error {
  readonly failure: ObjectFailure;

  constructor(message: string) {
    super(message);
    this.failure = { class: "noMatch", reason: "KindUnavailable", message, retryable: true, outcomeUnknown: false };
  }
}
