import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";

const started = "http.client.request.start";
const answered = "http.client.response.finish";
const failed = "http.client.request.error";

interface Step {
  readonly asked: Map<string, number>;
  /** The time of its first request, by `performance.now()`. */
  readonly begunMs: number;
}

/**
 * Groups the requests of this process into steps that wait for each other: a step begins when a request is sent while no
 * other one is open. Requests that overlap without a pause are one step.
 */
export class Steps {
  readonly #steps: Step[] = [];
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

  /**
   * Returns each step as text: its requests with their counts, and the time until the next step began.
   * @param endMs - the end of the last step.
   */
  read(endMs: number): readonly string[] {
    return this.#steps.map(({ asked, begunMs }, index) => {
      const ms = (this.#steps[index + 1]?.begunMs ?? endMs) - begunMs;
      const words = [...asked].map(([what, times]) => (times === 1 ? what : `${what} x${times}`));
      return `${words.join(", ")}: ${ms.toFixed(1)} ms`;
    });
  }

  readonly #onStart = (message: unknown) => {
    const { request } = message as { readonly request: ClientRequest };
    if (this.#underWay.size === 0) this.#steps.push({ asked: new Map(), begunMs: performance.now() });
    this.#underWay.add(request);
    const asked = this.#steps.at(-1)?.asked;
    const what = wordsOf(request);
    asked?.set(what, (asked.get(what) ?? 0) + 1);
  };

  readonly #onAnswer = (message: unknown) => {
    const { request, response } = message as { readonly request: ClientRequest; readonly response: IncomingMessage };
    response.once("close", () => this.#underWay.delete(request));
  };

  readonly #onFailure = (message: unknown) => {
    this.#underWay.delete((message as { readonly request: ClientRequest }).request);
  };
}

/** Names an AWS call by its operation, a blob by its folder, an apply by its method only, and others by their path. */
function wordsOf(request: ClientRequest): string {
  const target = request.getHeader("x-amz-target");
  if (target !== undefined) return String(target).split(".").at(-1) ?? "";
  const [path = ""] = request.path.split("?");
  const folder = /^\/[^/]+\/(renderings|inventories)\//.exec(path)?.[1];
  if (folder !== undefined) return `${request.method} ${folder}`;
  return request.method === "PATCH" ? "PATCH" : `${request.method} ${path}`;
}
