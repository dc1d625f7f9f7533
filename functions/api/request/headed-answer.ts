/** An answer of a route that also says something in headers, for programs that read only those. */
export class HeadedAnswer {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: unknown, headers: Readonly<Record<string, string>>) {
    this.body = body;
    this.headers = headers;
  }
}
