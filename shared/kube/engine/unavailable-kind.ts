import type { ObjectFailure } from "#shared/kube/engine/object-failure.ts";

/** The server of a kind's group does not answer. Its objects are unknown, which does not mean that they are absent. */
export class UnavailableKind extends Error {
  readonly failure: ObjectFailure;

  constructor(message: string) {
    super(message);
    this.failure = { class: "noMatch", reason: "KindUnavailable", message, retryable: true, outcomeUnknown: false };
  }
}
