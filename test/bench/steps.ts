import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";

const started = "http.client.request.start";
const answered = "http.client.response.finish";
const failed = "http.client.request.error";

/**
 * The requests of this process in steps that wait for each other: a new one begins when a request is sent while none is under
 * way. What runs side by side all the time is one step.
 */
export class Steps {
  readonly #steps: Map<string, number>[] = [];
  readonly #underWay = new Set<ClientRequest>();

  start(): void {
    subscribe(started, this.#onStart);
    subscribe(answered, this.#onAnswer);
    subscribe(failed, this.#onFailure);
  }

  stop(): void {
    unsubscribe(started, this.#onStart);
    unsubscribe(answered, this.#onAnswer);
    unsubscribe(failed, this.#onFailure);
  }

  /** In words, each with what was asked and how often. */
  read(): readonly string[] {
    return this.#steps.map((step) =>
      [...step].map(([what, times]) => (times === 1 ? what : `${what} x${times}`)).join(", "),
    );
  }

  readonly #onStart = (message: unknown) => {
    const { request } = message as { readonly request: ClientRequest };
    if (this.#underWay.size === 0) this.#steps.push(new Map());
    this.#underWay.add(request);
    const step = this.#steps.at(-1);
    const what = wordsOf(request);
    step?.set(what, (step.get(what) ?? 0) + 1);
  };

  readonly #onAnswer = (message: unknown) => {
    const { request, response } = message as { readonly request: ClientRequest; readonly response: IncomingMessage };
    response.once("close", () => this.#underWay.delete(request));
  };

  readonly #onFailure = (message: unknown) => {
    this.#underWay.delete((message as { readonly request: ClientRequest }).request);
  };
}

/** A call of AWS by its operation, a blob by its folder, anything else by its path; applies are too many to be told apart. */
function wordsOf(request: ClientRequest): string {
  const target = request.getHeader("x-amz-target");
  if (target !== undefined) return String(target).split(".").at(-1) ?? "";
  const [path = ""] = request.path.split("?");
  const folder = /^\/[^/]+\/(renderings|inventories)\//.exec(path)?.[1];
  if (folder !== undefined) return `${request.method} ${folder}`;
  return request.method === "PATCH" ? "PATCH" : `${request.method} ${path}`;
}
