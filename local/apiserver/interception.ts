export interface InterceptedRequest {
  readonly cluster: string;
  readonly method: string;
  readonly path: string;
  /** "before" the request has an effect, or "after" it and before the answer is sent. */
  readonly phase: "before" | "after";
}

export interface InterceptedAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Interception = "pass" | "reset" | InterceptedAnswer;
export type Interceptor = (request: InterceptedRequest) => Interception | Promise<Interception>;
